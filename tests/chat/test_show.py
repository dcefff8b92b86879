"""What /draft and /set show, token by token and literally."""

from __future__ import annotations

from specdec_cli.chat.actions import COMMANDS
from specdec_cli.chat.show import REJECTED, to_draft, to_help, to_session, to_settings
from specdec_cli.chat.slash import Command
from specdec_cli.core.decode import Round
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.core.verify import Kind

PIECES = [b"a", b"\xe2\x82", b"\xac", b"[/b]", b"\n", b"\x1b"]
GREEN, RED, CYAN = "green", "red", "cyan"


def round_(kept: tuple[int, ...], last: int | None, kind: Kind | None, rejected: tuple[int, ...] = ()) -> Round:
    tokens = kept if last is None else (*kept, last)
    return Round(len(kept) + len(rejected), len(kept), kind, tokens, (), rejected=rejected)


def shown(*rounds: Round) -> list[tuple[str, str]]:
    return [part for part in to_draft(rounds, PIECES, styled=True) if part[0]]


def test_rejected_tokens_stand_before_what_took_their_place() -> None:
    parts = shown(round_((0,), 3, Kind.CORRECTION, (0, 4)), round_((0,), 0, Kind.BONUS))
    assert parts[:5] == [("a", GREEN), ("a␊", REJECTED), ("[/b]", RED), ("a", GREEN), ("a", CYAN)]


def test_a_character_of_several_tokens_is_shown_when_it_is_whole() -> None:
    assert shown(round_((1,), 2, Kind.BONUS))[0] == ("€", CYAN)


def test_half_a_rejected_character_and_control_characters_do_no_harm() -> None:
    parts = shown(round_((), 5, Kind.CORRECTION, (1,)))
    assert parts[:2] == [("\ufffd", REJECTED), ("␛", RED)]


def test_a_round_that_was_cut_short_shows_what_is_left_of_it() -> None:
    assert shown(round_((0,), None, None))[0] == ("a", GREEN)


def test_the_legend_names_the_colours() -> None:
    legend = shown(round_((), 0, Kind.BONUS))[2:]
    assert [part for part in legend if part[1]] == [
        ("accepted", GREEN),
        ("corrected", RED),
        ("bonus", CYAN),
        ("rejected", REJECTED),
    ]


def test_settings_are_shown_as_they_are_typed() -> None:
    values = {
        "temperature": 0.5,
        "top-k": 1,
        "draft": True,
        "think": False,
        "stop": ["a b", "\n"],
        "samplers": ("top_k", "temperature"),
        "logit-bias": {"5": None, "6": 1.5},
        "grammar": None,
    }
    ((text, _),) = to_settings(values)
    assert text.splitlines() == [
        "temperature  0.5",
        "top-k        1",
        "draft        on",
        "think        off",
        "stop         'a b' '␊'",
        "samplers     top_k;temperature",
        "logit-bias   5=-inf 6=1.5",
        "grammar      default",
    ]


def test_the_help_is_the_table() -> None:
    text = "".join(
        part for part, _ in to_help([Command("x", "[Y]", "Does it.", print), Command("long", "", "Too.", print)])
    )
    assert text.splitlines()[:2] == ["/x [Y]  Does it.", "/long   Too."]


def test_the_help_of_the_chat_fits_eighty_columns() -> None:
    text = "".join(part for part, _ in to_help(COMMANDS))
    assert max(map(len, text.splitlines())) <= 80


def test_a_session_without_drafts_has_no_bars() -> None:
    assert to_session(Counters(rounds=1, bonus=1), Timing(verify=1), 1) == [
        ("1 answer · 1 token · 1.0 tokens/s", "dim")
    ]
