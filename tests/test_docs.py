"""The documentation holds what it says: links lead somewhere, codes and examples are those of the program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from scripts.man_page import to_page
from specdec_cli import errors
from specdec_cli.cli import app
from tests.toy_gguf import attention_toy

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OPTIONS_OF_OTHERS = {"--help", "--extra-index-url", "--staged", "--strict", "--repeats", "--workers", "--delays"}
CODES = {getattr(errors, name) for name in vars(errors) if name.startswith("EXIT_")}


def links(page: Path) -> Iterator[str]:
    text = FENCE.sub("", page.read_text("utf-8"))
    yield from (one or other for one, other in LINK.findall(text))


def anchors(page: Path) -> set[str]:
    """The names that headings have in links, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for link in links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.exists() and target not in reached:
                waiting.append(target)
    assert {page for page in PAGES if page.parent.name == "docs"} <= reached


def test_the_documented_exit_codes_are_those_of_the_program() -> None:
    text = (ROOT / "docs" / "exit-codes.md").read_text("utf-8")
    table = text.partition("## Exit codes")[2].partition("\n\n| command")[0]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == CODES
    command: Any = typer.main.get_command(app)
    assert {int(code) for code in re.findall(r"(\d+) ", command.epilog)} == CODES


def test_every_option_that_a_page_names_is_one_of_the_program() -> None:
    manual = to_page(typer.main.get_command(app)).replace("\\-", "-").replace("\\fB", " ")
    known = set(OPTION.findall(manual)) | OPTIONS_OF_OTHERS
    for page in PAGES:
        assert set(OPTION.findall(page.read_text("utf-8"))) <= known, page.name


def test_the_man_page_is_what_the_command_line_says_today() -> None:
    page = (ROOT / "docs" / "specdec.1").read_text("utf-8")
    assert page == to_page(typer.main.get_command(app)), "python -m scripts.man_page > docs/specdec.1"


def test_the_man_page_holds_no_markup_and_no_line_that_roff_would_take_for_a_command() -> None:
    page = to_page(typer.main.get_command(app))
    assert "[b]" not in page
    assert "[/" not in page
    known = {".TH", ".SH", ".SS", ".TP", ".PP", ".B"}
    assert {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))} <= known
    assert ".SS specdec models check" in page


def test_the_examples_for_programs_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attention_toy(3.0).write(tmp_path / "big.gguf")
    attention_toy(2.0).write(tmp_path / "small.gguf")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "library.md").read_text("utf-8")
    examples = [code for language, code in FENCE.findall(text) if language == "python"]
    assert len(examples) > 4
    names: dict[str, Any] = {}
    for example in examples:
        exec(compile(example, "docs/library.md", "exec"), names)
    assert "α" in capsys.readouterr().out
