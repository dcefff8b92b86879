"""The page of a trace in a real Chromium without a window: clicks and keys, hostile text, no request, all sizes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from specdec_cli.traces.page import to_page
from specdec_cli.traces.trace import Trace
from tests.traces.made_traces import corrected_round, drafted_token, kept_round, plain_round, to_answer, to_trace

pytestmark = pytest.mark.browser

FLAGS: Final = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
CALM: Final = to_trace(
    kept_round(0, ["def", " f"], "(x):"),
    corrected_round(1, ["\n    return"], [" y", " +", " 1"], " x"),
    plain_round(2, " * 2"),
    kept_round(3, ["\n"], "end"),
)

PATIENCE = 60.0
"""Seconds until a test that waits for the impossible fails."""


class Page:
    """A browser with one page, its keys, and what it complained about."""

    def __init__(self, driver: webdriver.Chrome, folder: Path) -> None:
        self._driver = driver
        self._folder = folder

    def open(self, trace: Trace, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Show `trace` in a window of this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.complaints()
        self.requests()
        path = self._folder / "trace.html"
        path.write_text(to_page(trace), encoding="utf-8")
        self._driver.get(path.as_uri())

    def all(self, selector: str) -> list[WebElement]:
        """The elements that match."""
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def wait_for(self, selector: str) -> list[WebElement]:
        """The elements that match, once there are any: what unfolds is filled a moment after the click."""
        return WebDriverWait(self._driver, PATIENCE).until(lambda _: self.all(selector))

    def one(self, selector: str) -> WebElement:
        """The only element that matches."""
        [found] = self.all(selector)
        return found

    def text(self, selector: str) -> str:
        """What one element holds, seen or not."""
        return str(self.one(selector).get_attribute("textContent"))

    def press(self, *keys: str) -> None:
        """Keys for whatever has the focus."""
        self._driver.switch_to.active_element.send_keys(*keys)

    def run(self, script: str) -> Any:
        """The value of a script with a return."""
        return self._driver.execute_script(script)

    def complaints(self) -> list[str]:
        """What the console said since it was asked last."""
        return [str(entry["message"]) for entry in self._driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last time."""
        log = self._driver.get_log("performance")  # type: ignore[no-untyped-call]
        events = [json.loads(entry["message"])["message"] for entry in log]
        return [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]


def find_browser() -> tuple[str, str]:
    """Where Chromium and its driver are; without them the tests are skipped, or fail if they are required."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    reason = "no Chromium: install chromium and chromium-driver"
    if os.environ.get("SPECDEC_REQUIRE_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    browser, service = find_browser()
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(service))
    yield driver
    driver.quit()


@pytest.fixture
def page(driver: webdriver.Chrome, tmp_path: Path) -> Iterator[Page]:
    page = Page(driver, tmp_path)
    yield page
    assert page.complaints() == []


def title(page: Page) -> str:
    return page.text("#round-title")


def selected(page: Page) -> str:
    return page.text("[aria-selected=true]")


def test_the_answer_stands_there_with_each_token_by_its_kind(page: Page) -> None:
    page.open(CALM)
    assert "".join(str(each.get_attribute("textContent")) for each in page.all("#answer .token")) == (
        "def f(x):\n    return x * 2\nend"
    )
    assert [str(each.get_attribute("class")).split()[1] for each in page.all("#answer .token")] == [
        *("accepted", "accepted", "bonus"),
        *("accepted", "correction"),
        "bonus",
        *("accepted", "bonus"),
    ]


def test_kinds_differ_by_more_than_colour(page: Page) -> None:
    page.open(CALM)
    lines = {
        kind: page.run(f"return getComputedStyle(document.querySelector('.answer .{kind}')).textDecorationStyle")
        for kind in ("accepted", "correction", "bonus")
    }
    assert lines == {"accepted": "solid", "correction": "double", "bonus": "dotted"}


def test_nothing_is_asked_of_any_network(page: Page) -> None:
    page.open(CALM)
    page.all(".token.correction")[-1].click()
    asked = [address for address in page.requests() if not address.startswith("data:image/svg+xml,")]
    assert [address.partition(":")[0] for address in asked] == ["file"]


def test_a_click_opens_the_round_of_a_token(page: Page) -> None:
    page.open(CALM)
    page.one("#answer .correction").click()
    assert title(page) == "Round 1"
    assert "Drafted 4, kept 1, then a correction: ␣x." in page.text("#round")
    assert "Drafted by model at place 11 of the text; rounds are 0 to 3." in page.text("#round")
    assert page.text("#said").startswith("Round 1. Drafted 4")
    assert page.text("#part-draft-0").startswith("↵␣␣␣␣return✓ accepted")
    assert "the draw 0.930 is not below that" in page.text("#part-draft-1")
    assert "– unexamined" in page.text("#part-draft-2")
    assert "the residual, max(0, p − q)" in page.text("#part-own")
    assert page.one("#part-own").get_attribute("open")
    assert page.one("#part-draft-1").get_attribute("open")
    assert "3.36 tokens for 2.00 plain steps" in page.text("#round")


def test_a_click_on_an_accepted_token_opens_its_part_of_the_round(page: Page) -> None:
    page.open(CALM)
    page.all("#answer .accepted")[1].click()
    assert page.one("#round .here").get_attribute("id") == "part-draft-1"


def test_each_rule_decides_in_its_own_words(page: Page) -> None:
    kept = drafted_token("a", "accepted", draw=0.3)
    decided = [
        replace(kept, probability=None, draw=None),
        replace(kept, probability=0.5),
        drafted_token("c", "rejected", draw=0.93),
        replace(drafted_token("d", "unexamined"), probability=0.1, draw=0.7),
        replace(kept, decision="cut"),
    ]
    block = replace(corrected_round(0, ["a", "b"], ["c"], "x"), drafted=tuple(decided))
    page.open(Trace((to_answer([block], rule="block"), to_answer([block], rule="coupled"))))
    assert [page.text(f"#part-draft-{index} > div > p:first-child") for index in range(5)] == [
        "Accepted with the block: a longer beginning of the block passed as a whole.",
        "Accepted: the block up to here passes with 0.500, and the draw 0.300 is below that.",
        "Rejected: the block up to here passes with 0.800, and the draw 0.930 is not below that.",
        "Not kept: the block up to here passes with 0.100, and the draw 0.700 is not below that.",
        "The answer ended before it, so it counts as not drafted.",
    ]
    page.all("#choice option")[1].click()
    assert "the target drew the same token" in page.text("#part-draft-0")
    assert "the target drew another token" in page.text("#part-draft-2")


def test_an_end_of_generation_is_told_and_what_it_replaced_is_shown(page: Page) -> None:
    last = corrected_round(0, ["a"], [" b"], "<end>")
    page.open(to_trace(replace(last, emitted=last.emitted[:1], ended=True)))
    assert "Drafted 2, kept 1; the answer ends here." in page.text("#round")
    assert page.text("#part-own .note") == "end of generation"
    page.one("#rejected").click()
    assert page.text("#answer") == "a␣b"


def test_keys_go_through_tokens_and_rounds_and_into_one(page: Page) -> None:
    page.open(CALM, height=500)
    page.run("document.querySelector('#answer').focus()")
    page.press(Keys.HOME)
    assert (title(page), selected(page)) == ("Round 0", "def")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert (title(page), selected(page)) == ("Round 1", " x")
    page.press(Keys.ARROW_DOWN)
    assert (title(page), selected(page)) == ("Round 2", " * 2")
    assert page.run("return scrollY") == 0
    page.press(Keys.ARROW_UP, Keys.ARROW_LEFT)
    assert (title(page), selected(page)) == ("Round 0", "(x):")
    page.press(Keys.END, Keys.ENTER)
    assert title(page) == "Round 3"
    assert page.run("return document.activeElement.id") == "round-title"
    page.press(Keys.ESCAPE)
    assert page.run("return document.activeElement.id") == "answer"


def test_buttons_step_through_the_rounds_and_keep_the_focus(page: Page) -> None:
    page.open(CALM)
    page.one("#next-correction").click()
    assert title(page) == "Round 1"
    page.one("#next").click()
    assert (title(page), page.run("return document.activeElement.id")) == ("Round 2", "next")
    page.one("#next").click()
    assert (title(page), page.run("return document.activeElement.id")) == ("Round 3", "round-title")
    page.one("#next-correction").click()
    assert title(page) == "Round 1"


def test_a_chart_opens_the_round_under_the_pointer_and_has_a_table(page: Page) -> None:
    page.open(to_trace(*CALM.answers[0].rounds[:3]))
    assert [each.text for each in page.all("#charts h3")] == [
        *("Acceptance by position", "Draft length", "Time of a round", "Expected and real tokens")
    ]
    page.all("#charts svg.opens")[0].click()
    assert title(page) == "Round 1"
    assert page.all("#charts .readout")[1].text == "round 1: 4.0 drafted, 1.0 kept"
    page.all("#charts summary")[0].click()
    rows = [row.text.split() for row in page.wait_for("#charts tbody tr")]
    assert rows == [["1", "2", "2", "100", "%", "0.85"], ["2", "2", "1", "50", "%", "0.85"]]


def test_a_chart_of_nothing_and_a_correction_that_never_came_are_not_offered(page: Page) -> None:
    cut = replace(drafted_token("a", "cut"), examined=None)
    ended = replace(corrected_round(1, [], ["b"], "<end>"), emitted=(), ended=True)
    page.open(to_trace(replace(kept_round(0, ["a"], "b"), drafted=(cut,))))
    assert page.all("#charts h3")[0].text == "Draft length"
    page.open(to_trace(kept_round(0, ["a"], "b"), ended))
    assert page.one("#next-correction").get_attribute("disabled")


def test_rejected_drafts_are_shown_on_demand(page: Page) -> None:
    page.open(CALM)
    assert page.all("#answer .rejected") == []
    page.one("#rejected").click()
    assert [each.text for each in page.all("#answer .rejected")] == ["␣y", "␣+", "␣1"]
    page.all("#answer .rejected")[1].click()
    assert title(page) == "Round 1"
    assert page.one("#part-draft-2").get_attribute("open")


def test_what_is_copied_is_the_answer(page: Page) -> None:
    page.open(CALM)
    page.one("#rejected").click()
    page.run("addEventListener('copy', (event) => { window.copied = event.clipboardData.getData('text/plain') })")
    page.run("getSelection().selectAllChildren(document.querySelector('#answer'))")
    page.run("document.querySelector('#answer').focus()")
    page.press(Keys.CONTROL, "c")
    assert page.run("return window.copied") == "def f(x):\n    return x * 2\nend"


def test_several_answers_are_chosen_by_name(page: Page) -> None:
    page.open(Trace((*CALM.answers, to_answer([plain_round(0, "Second")], label={"prompt": "code"}))))
    assert [each.text for each in page.all("#choice option")] == ["1: def f(x): return x * 2 end", "2: prompt code"]
    page.all("#choice option")[1].click()
    assert page.text("#answer") == "Second"
    assert title(page) == "Round 0"
    assert "Nothing was drafted, then the target's own token: Second." in page.text("#round")


def test_one_answer_needs_no_choice_and_none_needs_no_round(page: Page) -> None:
    page.open(to_trace())
    assert not page.one("#chooser").is_displayed()
    assert "Choose a token" in page.text("#round")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>document.title='taken'</script>", "<script>document.title='taken'</script>"),
        ("</script><img src=x onerror=document.title='taken'>", "</script><img src=x onerror=document.title='taken'>"),
        ("a\u202eb\u2028c\u2066d", "a⟨U+202E⟩b⟨U+2028⟩c⟨U+2066⟩d"),
        ("\x00\x1b[31m\x7f\x9b\r", "␀␛[31m␡⟨U+9B⟩␍".replace("U+9B", "U+009B")),
        ("שלום عربى", "שלום عربى"),
        (b"\x82", "\ufffd"),
    ],
)
def test_hostile_text_stays_text(page: Page, text: str | bytes, shown: str) -> None:
    page.open(to_trace(corrected_round(0, [text], [text], text)))
    page.one("#answer .correction").click()
    page.one("#rejected").click()
    name = page.run("return document.title")
    assert name == "specdec trace: big.gguf on CPU"
    assert [each.get_attribute("textContent") for each in page.all("#answer [role=option]")] == [shown, shown]
    assert page.all("main script, main img") == []


def test_a_huge_token_neither_hangs_nor_hides_the_rest(page: Page) -> None:
    page.open(to_trace(kept_round(0, ["x" * 10_000_000], " end")))
    page.all("#answer .token")[1].click()
    assert selected(page) == " end"


def test_the_policy_holds_against_scripts_and_markup_that_get_in(page: Page) -> None:
    page.open(CALM)
    page.run("const s = document.createElement('script'); try { s.textContent = 'window.taken = 1' } catch {};"
             "document.body.append(s)")  # fmt: skip
    assert page.run("return window.taken ?? null") is None
    assert (
        page.run("try { document.body.innerHTML = '<b>x</b>'; return 'set' } catch { return 'refused' }") == "refused"
    )
    assert page.complaints()


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_follows_the_system_and_its_own_button(page: Page, dark: bool) -> None:
    page.open(CALM, dark=dark)
    before = page.run("return getComputedStyle(document.body).backgroundColor")
    assert before == ("rgb(19, 20, 23)" if dark else "rgb(246, 246, 244)")
    page.one("#theme").click()
    assert page.run("return getComputedStyle(document.body).backgroundColor") != before
    assert page.one("#theme").get_attribute("aria-pressed") == str(not dark).lower()


def test_a_phone_scrolls_one_way_only_and_the_round_comes_from_below(page: Page) -> None:
    long = to_trace(kept_round(0, ["word" * 60, "\n", " and" * 30], "w" * 300), *CALM.answers[0].rounds[1:])
    page.open(long, width=360, height=740)
    assert not page.one("#round").is_displayed()
    page.one("#answer .correction").click()
    assert page.one("#round").is_displayed()
    for details in page.all("details:not([open])"):
        page.run(f"document.querySelectorAll('details')[{page.all('details').index(details)}].open = true")
    assert page.run("return document.documentElement.scrollWidth") <= 360
    page.one("#close").click()
    assert not page.one("#round").is_displayed()
    assert page.run("return document.activeElement.id") == "answer"


def test_ten_thousand_rounds_open_and_stay_usable(page: Page) -> None:
    rounds = [
        corrected_round(index, [" some", " word"], [" wrong"], "\n" if index % 9 == 0 else " right")
        for index in range(10_000)
    ]
    page.open(to_trace(*rounds))
    page.run("document.querySelector('#answer').focus()")
    page.press(Keys.END)
    assert title(page) == "Round 9999"
    page.press(Keys.ARROW_LEFT)
    assert selected(page) == " word"
    assert page.run("return document.querySelectorAll('#answer .token').length") == 30_000
