"""What `specdec bench` does: load the pair, let plain decoding and speculation take turns, and report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from specdec_cli.bench.facts import find_facts
from specdec_cli.bench.measuring import Measurement, Progress, measure
from specdec_cli.bench.plan import Job, Plan, jobs
from specdec_cli.bench.prompts import BenchPrompt
from specdec_cli.bench.report import Report, to_rows
from specdec_cli.bench.running import Run, run
from specdec_cli.bench.table import to_table
from specdec_cli.bench.words import to_words
from specdec_cli.bench.writing import to_csv, to_json
from specdec_cli.catalog import Pair
from specdec_cli.core.costs import Costs, median_costs
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from specdec_cli.generation import Request
from specdec_cli.llama import library
from specdec_cli.render import to_progress
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.status import StatusLine
from specdec_cli.telling import last_words, open_session
from specdec_cli.terminal import ONE_LINE, Terminal
from specdec_cli.tracing import open_tracer

Form = Literal["table", "json", "csv"]
WARM_UP: Final = 4
"""Tokens of a first answer that nobody counts: it reads the weights from the disk, and measures the costs."""


TIMED_TURNS: Final = 5
"""Turns at whose beginning passes are timed, which takes some seconds: a file of prompts may have hundreds."""


@dataclass(frozen=True, slots=True)
class Output:
    """What stdout gets, and where pictures and the trace go, if anywhere."""

    form: Form
    plot: Path | None
    trace: Path | None
    verbose: bool


def bench(pair: Pair, settings: ModelSettings, plan: Plan, terminal: Terminal, output: Output) -> int:
    """Measure `pair` by `plan` and show what came out; the exit code.

    Raises:
        SpecdecError: the pair or a prompt cannot be used, or an answer failed; what was measured before is shown.
    """
    if not pair.drafters:
        raise UsageError("there is no draft to compare with plain decoding", hint="-d FILE, -d lookup or another pair")
    status = StatusLine(terminal, hidden=output.verbose)
    library.show_log(terminal.log if output.verbose else None)
    with (
        open_tracer(output.trace, status.notice) as tracer,
        last_words(terminal, status),
        open_session(pair, settings, status) as session,
    ):
        plan = replace(plan, rule=plan.rule or session.defaults["rule"])
        tokens = {each.place: to_tokens(each, session, raw=plan.raw) for each in plan.prompts}
        first = tokens[plan.prompts[0].place]
        _warm_up(session, plan, first)
        costs: dict[int, Costs] = {}

        def answer(job: Job) -> Run:
            if job.turn not in costs and len(costs) < TIMED_TURNS:
                costs[job.turn] = session.measure_costs(first[0])
            request = to_request(job, plan, session)
            return run(session, tokens[job.prompt.place], request, tracer=tracer, label=to_label(job))

        measurement = measure(
            list(jobs(plan)),
            answer,
            lambda progress: status.show_loading(to_progress(in_words(progress), _share(progress))),
            time_limit=plan.time_limit,
        )
        status.close(interrupted=measurement.stopped == "interrupted")
        _check_compared(measurement)
        usual = median_costs([*costs.values()])
        report = Report(plan, find_facts(session), usual, measurement, to_rows(measurement, usual))
    return _show(report, terminal, output)


def to_tokens(prompt: BenchPrompt, session: Session, *, raw: bool) -> list[int]:
    """The tokens of `prompt` for the target.

    Raises:
        UsageError: it does not fit the context, or messages are to be continued as they are.
        ModelError: there is no chat template, or it refuses the messages.
    """
    if raw and not isinstance(prompt.prompt, str):
        raise UsageError(f"{prompt.place}: messages need a chat template", hint="drop --raw, or give a prompt")
    if isinstance(prompt.prompt, str) and raw:
        tokens = session.prompt_from_text(prompt.prompt)
    elif isinstance(prompt.prompt, str):
        tokens = session.prompt_from_messages([{"role": "user", "content": prompt.prompt}])
    else:
        tokens = session.prompt_from_messages(prompt.prompt)
    if len(tokens) >= session.context_limit:
        raise UsageError(
            f"{prompt.place}: the prompt has {len(tokens)} tokens and the context holds {session.context_limit}",
            hint="shorten the prompt or raise --ctx-size",
        )
    return tokens


def to_request(job: Job, plan: Plan, session: Session) -> Request:
    """What is asked for in `job`: the same luck whatever the draft length, and another in each turn."""
    return Request(
        session.chain({"temperature": job.temperature}),
        plan.seed + job.turn,
        draft_tokens=job.draft_tokens,
        max_tokens=job.prompt.max_tokens or plan.max_tokens,
        rule=plan.rule,
    )


def to_label(job: Job) -> dict[str, Any]:
    """What tells the answers of a trace apart."""
    return {
        "prompt": job.prompt.kind,
        "temperature": job.temperature,
        "draft_tokens": job.draft_tokens,
        "turn": job.turn,
    }


def _warm_up(session: Session, plan: Plan, tokens: list[int]) -> None:
    """Let everything be there that a first answer needs, the costs that `auto` decides by among it."""
    chain = session.chain({"temperature": plan.temperatures[0]})
    run(session, tokens, Request(chain, plan.seed, draft_tokens="auto", max_tokens=WARM_UP))


def _check_compared(measurement: Measurement) -> None:
    """Refuse to report where nothing can be compared yet.

    Raises:
        SpecdecError: what went wrong, or that time was too short.
        KeyboardInterrupt: Ctrl-C came too early.
    """
    if any(each.job.draft_tokens != 0 for each in measurement.samples):
        return
    if measurement.error is not None:
        raise measurement.error
    if measurement.stopped == "interrupted":
        raise KeyboardInterrupt
    raise UsageError("--time-limit is over before anything could be compared", hint="give it more seconds, or 0")


def in_words(progress: Progress) -> str:
    """What is going on, for the status line."""
    job = progress.job
    length = "plain" if job.draft_tokens == 0 else f"γ {job.draft_tokens}"
    left = "" if progress.seconds_left is None else f" · {_duration(progress.seconds_left)} left"
    kind = job.prompt.kind.translate(ONE_LINE)
    return f"{progress.number} of {progress.planned}{left} · {kind}, temperature {job.temperature:g}, {length}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _share(progress: Progress) -> float:
    return (progress.number - 1) / progress.planned


def _show(report: Report, terminal: Terminal, output: Output) -> int:
    makers: Mapping[Form, Callable[[], str]] = {
        "json": lambda: to_json(report),
        "csv": lambda: to_csv(report),
        "table": lambda: _to_text(report, terminal),
    }
    try:
        terminal.write_text(makers[output.form]())
    finally:  # pictures are made even if nobody reads the text to its end
        if output.plot is not None:
            _draw(report, output.plot, terminal)
    if report.measurement.error is not None:
        raise report.measurement.error
    return EXIT_INTERRUPTED if report.measurement.stopped == "interrupted" else EXIT_OK


def _to_text(report: Report, terminal: Terminal) -> str:
    width = shutil.get_terminal_size().columns if terminal.shows_text else None
    return to_table(report, width) + "\n" + to_words(report, width)


def _draw(report: Report, path: Path, terminal: Terminal) -> None:
    from specdec_cli.bench.plot import draw

    draw(report, path)
    terminal.notice(f"the pictures are in {path}")
