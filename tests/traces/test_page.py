"""The page of a trace as a string: its policy, and that no text of a trace becomes anything else than text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any, Final

import pytest

from specdec_cli.traces.page import to_page
from specdec_cli.traces.page.building import SCRIPTS, STYLES
from specdec_cli.traces.page.facts import to_facts, to_figures, to_name, to_title
from specdec_cli.traces.page.payload import emitted_texts, to_payload
from specdec_cli.traces.trace import Trace, TracedRound
from tests.traces.made_traces import corrected_round, kept_round, plain_round, to_answer, to_trace

HOSTILE: Final = [
    "<script>alert(1)</script>",
    "</script>",
    "<!--<script>",
    "]]>",
    "&lt;b&gt;",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "\u2028\u2029",
    "\u202egnp.exe",
    "\x00\x1b[31m\x7f\x9b",
    'a" onload="alert(1)',
]
SVG_NAMESPACE: Final = "http://www.w3.org/2000/svg"


class Elements(HTMLParser):
    """All elements of a page: tag, attributes and the text up to the next tag."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.append("")
        self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[-1] += data

    def of(self, tag: str, **attributes: str) -> list[str]:
        """The texts of all elements like this."""
        return [
            text
            for (name, attrs), text in zip(self.found, self.texts, strict=True)
            if name == tag and attributes.items() <= attrs.items()
        ]

    def policy(self) -> dict[str, str]:
        """The directives of the content security policy."""
        [policy] = [attrs["content"] for _, attrs in self.found if attrs.get("http-equiv") == "Content-Security-Policy"]
        assert policy
        return {name: value for name, _, value in (part.strip().partition(" ") for part in policy.split(";"))}


def some_rounds(texts: Sequence[str | bytes] = (" a", " b")) -> list[TracedRound]:
    return [corrected_round(0, texts, texts, texts[0]), kept_round(1, texts, texts[-1]), plain_round(2, texts[0])]


def data_of(page: str) -> dict[str, Any]:
    [text] = Elements(page).of("script", id="answer-0")
    return dict(json.loads(text))


def to_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_this_style_and_this_script_and_nothing_else() -> None:
    elements = Elements(to_page(to_trace(*some_rounds())))
    [style], [script] = elements.of("style"), elements.of("script", type="module")
    assert elements.policy() == {
        "default-src": "'none'",
        "style-src": to_hash(style),
        "script-src": to_hash(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_nothing_is_loaded_and_no_attribute_is_code() -> None:
    page = to_page(to_trace(*some_rounds()))
    attributes = [item for _, attrs in Elements(page).found for item in attrs.items()]
    assert not [name for name, _ in attributes if name.startswith("on") or name in {"style", "src", "srcset", "action"}]
    links = [value or "" for name, value in attributes if name == "href"]
    assert [link for link in links if not link.startswith(("data:image/svg+xml,", "#"))] == []
    assert re.findall(r"https?:[^\s\"'<]*", page.replace(SVG_NAMESPACE, "")) == []
    assert "url(" not in page
    assert "@import" not in page


def test_every_file_of_the_page_is_in_it() -> None:
    folder = files("specdec_cli.traces.page")
    assert {each.name for each in (folder / "styles").iterdir()} == {f"{name}.css" for name in STYLES}
    assert {each.name for each in (folder / "scripts").iterdir()} == {f"{name}.js" for name in SCRIPTS}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    trace = to_trace(*some_rounds([text, "b"]))
    hostile = replace(trace.answers[0].header, target=text, label={text: text}, sampling={text: text})
    page = to_page(Trace((replace(trace.answers[0], header=hostile),)))
    harmless = Elements(to_page(trace))
    elements = Elements(page)
    assert [tag for tag, _ in elements.found] == [tag for tag, _ in harmless.found]
    assert elements.of("title")[0].replace("\x00", "\ufffd") == f"specdec trace: {text}".replace("\x00", "\ufffd")
    assert ["target", text] in data_of(page)["facts"]
    assert data_of(page)["rounds"][0]["emitted"][0]["text"] == text
    assert "<" not in elements.of("script", id="answer-0")[0] + elements.of("script", id="names")[0]


def test_half_a_surrogate_can_be_written_to_a_file() -> None:
    trace = to_trace(*some_rounds())
    answer = replace(
        trace.answers[0], header=replace(trace.answers[0].header, target="\ud800.gguf", label={"a": "\udfff"})
    )
    assert to_page(Trace((answer,))).encode("utf-8")


def test_a_character_stands_at_the_token_that_completes_it() -> None:
    euro = "€".encode()
    pieces = [euro[:1], euro[1:2], euro[2:] + b"!", b"\xff", " ü".encode()[:2]]
    answer = to_answer([kept_round(0, pieces[:3], pieces[3]), plain_round(1, pieces[4])])
    assert emitted_texts(answer) == ["", "", "€!", "\ufffd", " \ufffd"]
    assert [each["own"] for each in to_payload(answer)["rounds"][0]["emitted"]] == ["\\xe2", "\\x82", "\\xac!", "\\xff"]


def test_a_huge_token_is_shown_by_its_beginning() -> None:
    page = to_page(to_trace(*some_rounds(["x" * 10_000_000])))
    assert len(page) < 100_000
    assert data_of(page)["rounds"][2]["emitted"][0]["text"].endswith("x… (10,000,000 characters)")


def test_an_answer_without_rounds_has_a_page() -> None:
    assert data_of(to_page(to_trace()))["rounds"] == []


def test_an_infinite_ratio_is_strict_json() -> None:
    first = corrected_round(0, ["a"], [], "b")
    examined = first.drafted[0].examined
    assert examined
    drafted = (replace(first.drafted[0], q=0.0, examined=replace(examined, ratio=None)),)
    [one] = data_of(to_page(to_trace(replace(first, drafted=drafted))))["rounds"][0]["drafted"]
    assert one["examined"]["ratio"] is None


def test_each_answer_is_data_of_its_own_with_a_name_to_choose_it_by() -> None:
    labelled = to_answer(some_rounds(), label={"prompt": "code", "draft_tokens": 4})
    elements = Elements(to_page(Trace((to_answer([plain_round(0, "Hello,\n you")]), labelled))))
    assert len(elements.of("script", type="application/json")) == 3
    assert json.loads(elements.of("script", id="names")[0]) == ["1: Hello, you", "2: prompt code, draft tokens 4"]


def test_names_and_titles_of_any_length_are_short() -> None:
    answer = to_answer([plain_round(0, "y" * 1000)], target="z" * 1000)
    assert len(to_name(1, answer)) < 100
    assert len(to_title(Trace((answer,)))) < 100


def test_figures_are_computed_from_what_was_decided() -> None:
    figures = {name: (value, note) for name, value, note in to_figures(to_answer(some_rounds()))}
    assert figures["Tokens"] == ("7", "by itself")
    assert figures["Tokens a round"] == ("2.33", "3 rounds")
    assert figures["α"] == ("0.80", "Σ min(p, q) 0.85")
    assert figures["Accepted"] == ("67 %", "4 of 6 drafted")
    assert figures["Tokens/s"][0] == "93.3"
    assert figures["Time"][0] == "16/80/4 %"


def test_drafts_that_were_cut_off_are_not_counted() -> None:
    first = kept_round(0, ["a", "b"], "c")
    cut = replace(
        first, drafted=(first.drafted[0], replace(first.drafted[1], decision="cut")), emitted=first.emitted[:1]
    )
    figures = {name: (value, note) for name, value, note in to_figures(to_answer([cut]))}
    assert figures["Accepted"] == ("100 %", "1 of 1 drafted")


def test_nothing_drafted_has_no_alpha_and_an_answer_that_never_ended_says_so() -> None:
    answer = replace(to_answer([plain_round(0, "a")]), end=None)
    figures = {name: (value, note) for name, value, note in to_figures(answer)}
    assert figures["α"] == ("n/a", "Σ min(p, q) n/a")
    assert figures["Tokens"] == ("1", "the trace ends before the answer")


def test_facts_name_the_pair_and_its_settings() -> None:
    facts = dict(to_facts(to_answer([], draft=None, rule="coupled")))
    assert facts["target"] == "big.gguf on CPU"
    assert facts["draft"] == "none"
    assert facts["rule"] == "coupled"
    assert facts["samplers"] == '["top_k", "temperature"]'
