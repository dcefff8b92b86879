"""What a tuning found, as a table and a verdict for people, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from specdec_cli.json_line import to_line
from specdec_cli.limits import DEFAULT_RULE
from specdec_cli.settings import DEFAULT_BATCH
from specdec_cli.terminal import ONE_LINE
from specdec_cli.tune.finding import Finding, Row, Stage
from specdec_cli.tune.setting import Setting, to_words

VERSION: Final = 1
WIDEST: Final = 26
"""Of a setting in the table: the rest of a line has to fit 80 columns too."""
MISSING: Final = "n/a"


def to_report(finding: Finding) -> str:
    """A table of all that was tried, the verdict, and the options that say the same."""
    lines = [f"{'':<{WIDEST + 2}} {'tokens/s':>9} {'× plain':>8} {'runs':>5}"] if finding.stages else []
    for stage in finding.stages:
        ran = any(row.runs for row in stage.rows)
        lines += [stage.title, *map(_to_line, stage.rows)] if ran else [f"{stage.title}: {stage.rows[0].fate}"]
    lines += ["", *_verdict(finding)]
    return "".join(line.translate(ONE_LINE).rstrip() + "\n" for line in lines)


def to_options(setting: Setting) -> str:
    """What `specdec generate` takes to run as `setting` says; defaults are left out, but for who drafts and how far."""
    said = {
        "-d": to_words(setting.chain),
        "-k": setting.draft_tokens,
        "--rule": None if setting.rule == DEFAULT_RULE else setting.rule,
        "--draft-temperature": None if setting.draft_temperature == "auto" else setting.draft_temperature,
        "--threads": setting.threads,
        "--draft-threads": None if setting.draft_threads == setting.threads else setting.draft_threads,
        "--batch-size": None if setting.batch_size == DEFAULT_BATCH else setting.batch_size,
    }
    if setting.draft_tokens == 0:
        said = {"-d": "none", "--threads": setting.threads, "--batch-size": said["--batch-size"]}
    return shlex.join(word for name, value in said.items() if value is not None for word in (name, str(value)))


def to_json(finding: Finding, **more: Any) -> str:
    """The object of --json: all of the report, and `more`."""
    setting = finding.setting
    settings = asdict(setting) | {"draft": to_words(setting.chain)}
    del settings["chain"]
    found: dict[str, Any] = {
        "version": VERSION,
        "verdict": finding.verdict,
        "reason": finding.reason or None,
        "advice": list(finding.advice),
        "interrupted": finding.interrupted,
        "settings": settings,
        "options": to_options(setting),
        "figures": None if finding.ratio is None else asdict(finding.ratio),
        "stages": [_to_object(stage) for stage in finding.stages],
    }
    return to_line(found | more)


def _to_object(stage: Stage) -> dict[str, Any]:
    rows = [
        {
            "setting": row.words,
            "tokens_per_second": row.speed,
            "times_plain": row.times_plain,
            "runs": row.runs,
            "fate": row.fate,
        }
        for row in stage.rows
    ]
    return {"choice": stage.title, "tried": rows}


def _to_line(row: Row) -> str:
    words = row.words if len(row.words) <= WIDEST else "…" + row.words[1 - WIDEST :]
    speed = MISSING if row.speed is None else f"{row.speed:.1f}"
    ratio = "" if row.times_plain is None else f"{row.times_plain:.2f}"
    return f"  {words:<{WIDEST}} {speed:>9} {ratio:>8} {row.runs:>5}  {row.fate}"


def _verdict(finding: Finding) -> Iterator[str]:
    ratio = finding.ratio
    if finding.interrupted:
        yield f"interrupted; the best so far: {to_options(finding.setting)}"
    elif ratio is None:
        yield "not enough time to compare drafting with plain decoding: give a longer --time-limit"
        yield f"the best so far: {to_options(finding.setting)}"
    elif finding.verdict == "undecided":
        yield (
            f"drafting is {ratio.lowest:.2f} to {ratio.highest:.2f} × plain decoding here, which decides nothing: "
            "give a longer --time-limit, or an idle machine"
        )
        yield f"the best so far: {to_options(finding.setting)}"
    elif finding.verdict == "speculate":
        yield (
            f"drafting is {ratio.speed_up:.2f} × plain decoding here ({ratio.lowest:.2f} to {ratio.highest:.2f}): "
            f"{ratio.speculative:.1f} tokens/s after {ratio.plain:.1f}"
        )
        yield f"options: {to_options(finding.setting)}"
    else:
        yield f"do not speculate here, because {finding.reason}"
        for each in finding.advice:
            yield f"what would change it: {each}"
        yield f"options: {to_options(finding.setting)}"
