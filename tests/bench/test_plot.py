"""The pictures of a bench: whole files, with what they were measured on, and refused before anything is measured."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from specdec_cli.bench.picture import check_picture
from specdec_cli.bench.report import Report
from specdec_cli.errors import UsageError
from tests.bench.answers import plain_rounds, report, sample, three_ways

matplotlib = pytest.importorskip("matplotlib")
plot = pytest.importorskip("specdec_cli.bench.plot", reason="matplotlib is not installed")


def two_temperatures() -> Report:
    samples = [
        each
        for kind in ("code", "prose")
        for heat in (0.0, 1.0)
        for each in three_ways(kind, (1.5, 2), temperature=heat)
    ]
    return report(samples)


@pytest.mark.parametrize(("name", "beginning"), [("speed.svg", b"<?xml"), ("speed.PNG", b"\x89PNG\r\n\x1a\n")])
def test_both_kinds_of_file_are_written_whole(tmp_path: Path, name: str, beginning: bytes) -> None:
    plot.draw(two_temperatures(), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content.startswith(beginning)
    assert content.rstrip().endswith(b"</svg>" if name.endswith("svg") else b"IEND\xaeB`\x82")


def test_an_svg_needs_no_font_and_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        plot.draw(two_temperatures(), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert b"<text" not in (tmp_path / "one.svg").read_bytes()


def test_the_figure_shows_measured_and_predicted_and_names_the_machine() -> None:
    with matplotlib.rc_context(plot.STYLE):
        figure = plot.to_figure(two_temperatures())
    assert "A CPU, 2 cores usable" in figure.get_supxlabel()
    assert "llama-cpp-python 0.3.36" in figure.get_supxlabel()
    assert figure.get_suptitle() == "big.gguf\nwith small.gguf"
    cold, hot, acceptance, costs = figure.axes
    assert (cold.get_title("left"), hot.get_title("left")) == ("Speed-up at temperature 0", "Speed-up at temperature 1")
    assert [text.get_text() for text in cold.get_xticklabels()] == ["2", "auto"]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["code", "prose", "measured, all", "predicted", "predicted if v = 1"]
    assert [text.get_text() for text in acceptance.get_legend().get_texts()] == [
        "temperature 0, γ = 2",
        "temperature 1, γ = 2",
    ]
    assert costs.get_lines()[0].get_ydata()[:3] == pytest.approx([1.0, 1.2, 1.4])


def test_one_temperature_and_no_draft_at_all_still_make_a_picture(tmp_path: Path) -> None:
    samples = [sample("$x^2$ <b>", 0, plain_rounds(5), 1.0), sample("$x^2$ <b>", "auto", plain_rounds(5), 1.0)]
    plot.draw(report(samples), tmp_path / "one.svg")
    assert (tmp_path / "one.svg").stat().st_size > 1000


def test_names_of_any_kind_are_shown(tmp_path: Path) -> None:
    shown = report([each for kind in ("_hidden", "散文", "$\\alpha") for each in three_ways(kind, (1.5, 2))])
    plot.draw(shown, tmp_path / "names.png")
    with matplotlib.rc_context(plot.STYLE):
        names = [text.get_text() for text in plot.to_figure(shown).legends[0].get_texts()]
    assert names[:3] == [" _hidden", "散文", "$\\alpha"]


def test_a_folder_that_vanished_meanwhile_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        plot.draw(two_temperatures(), tmp_path / "gone" / "speed.svg")


@pytest.mark.parametrize("name", ["speed", "speed.pdf", "speed.svg.txt"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="has no ending that is known") as caught:
        check_picture(Path(name))
    assert caught.value.hint == "name a file .svg or .png"


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        check_picture(tmp_path / "none" / "speed.svg")


def test_without_matplotlib_the_way_to_get_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", dict[str, None]().get)
    with pytest.raises(UsageError, match="--plot needs matplotlib") as caught:
        check_picture(tmp_path / "speed.svg")
    assert "specdec-cli[plots]" in caught.value.hint


def test_a_picture_looks_the_same_whatever_style_the_user_draws_in(tmp_path: Path) -> None:
    plot.draw(two_temperatures(), tmp_path / "usual.svg")
    with matplotlib.rc_context({"axes.facecolor": "black", "lines.linewidth": 9}):
        plot.draw(two_temperatures(), tmp_path / "styled.svg")
    assert (tmp_path / "styled.svg").read_bytes() == (tmp_path / "usual.svg").read_bytes()


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    with pytest.raises(UsageError, match="cannot be written: Permission denied"):
        check_picture(tmp_path / "speed.svg")
