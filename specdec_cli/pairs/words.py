"""What is known of a pair, and what a check of it found, line by line for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specdec_cli.pairs.check import Need, Report, gigabytes
from specdec_cli.pairs.entries import Entry, ModelFile, label
from specdec_cli.placing_keys import PLACING_KEYS
from specdec_cli.terminal import ONE_LINE

UNKNOWN: Final = "?"
SAMPLING: Final = {"rule": "rule", "draft_temperature": "draft temperature"}
THREADS: Final = {"threads": "of the target", "draft_threads": "of the draft"}
ANSWERS: Final = {True: "yes", False: "no", None: UNKNOWN}
WAYS_BACK: Final = {
    "attention": "by leaving tokens out of its attention",
    "sliding window": "by leaving tokens out of its attention (a sliding window, kept whole)",
    "recurrent": "by kept states: it is recurrent",
    "hybrid": "by kept states: it is partly recurrent",
}


def to_details(entry: Entry) -> str:
    """All that is known of one pair."""
    lines = [f"{entry.name}{' (the default)' if entry.default else ''}"] if entry.name else []
    lines += _file_lines("target", entry.target)
    lines += _file_lines("draft", entry.draft) if entry.draft else []
    others = [each for each in entry.drafters if entry.draft is None or each != entry.draft.name]
    if others or not entry.draft:
        lines.append(_line("drafters" if entry.draft else "draft", ", ".join(entry.drafters) or "none"))
    length = "auto" if entry.draft_tokens is None else entry.draft_tokens
    lines.append(_line("length", f"{length} tokens a round" if length != "auto" else "auto"))
    lines += list(_setting_lines(entry))
    lines.append(
        _line(
            "size", f"{size_in_words(entry.size)}; on this machine: {here_in_words(entry)}; fits: {ANSWERS[entry.fits]}"
        )
    )
    lines += [_line("notes", entry.notes)] if entry.notes else []
    lines += [_line("from", str(entry.table))] if entry.table else []
    return "".join(line.translate(ONE_LINE) + "\n" for line in lines)


def to_report(report: Report) -> str:
    """What a check found, the verdict last."""
    lines = [*_need_lines("target", report.target)]
    lines += _need_lines("draft", report.draft) if report.draft else []
    if not report.draft:
        lines.append(_line("draft", ", ".join(map(label, report.pair.drafters)) or "none"))
    lines += list(_agreement_lines(report))
    machine = "" if report.machine is None else f" of {gigabytes(report.machine)}"
    lines.append(_line("memory", f"{gigabytes(report.memory)}{machine}, and some hundred MB to compute"))
    lines += [_line("note", each) for each in report.remarks]
    lines.append(_line("verdict", f"cannot run: {report.obstacle}" if report.obstacle else "can run"))
    lines += [_line("hint", report.way_out)] if report.way_out else []
    return "".join(line.translate(ONE_LINE) + "\n" for line in lines)


def size_in_words(size: int | None) -> str:
    """Bytes, as people read them."""
    return UNKNOWN if size is None else gigabytes(size)


def here_in_words(entry: Entry) -> str:
    """Whether the files of a pair are on this machine."""
    here = [each.here for each in entry.files]
    if all(here):
        return "yes"
    return "in part" if any(here) else "no"


def _line(title: str, text: str) -> str:
    return f"{title:<9} {text}"


def _file_lines(title: str, file: ModelFile) -> Iterator[str]:
    origin = f"{file.origin}: " if file.origin else ""
    name = file.name if file.origin else str(file.path)
    more = [size_in_words(file.size), file.licence or "", "here" if file.here else "not here"]
    yield _line(title, f"{origin}{name} ({', '.join(part for part in more if part)})")
    pinned = file.hub and {"revision": file.hub.revision, "SHA-256": file.hub.sha256}
    if pinned and any(pinned.values()):
        yield _line("", ", ".join(f"{what} {value}" for what, value in pinned.items() if value))


def _setting_lines(entry: Entry) -> Iterator[str]:
    settings, tuned = entry.settings, entry.tuned
    sampling = [f"{word} {settings[key]}" for key, word in SAMPLING.items() if key in settings]
    if sampling:
        yield _line("sampling", ", ".join(sampling))
    threads = [f"{settings[key]} {role}" for key, role in THREADS.items() if key in settings]
    if threads:
        yield _line("threads", ", ".join(threads))
    if "batch_size" in settings:
        yield _line("batch", f"{settings['batch_size']} prompt tokens in a pass")
    placing = [f"{key} {_listed(settings[key])}" for key in PLACING_KEYS if key in settings]
    if placing:
        yield _line("devices", ", ".join(placing))
    if tuned:
        yield _line("tuned", f"{tuned.get('date', UNKNOWN)} on {tuned.get('machine', UNKNOWN)}")
        yield from (_line("", each) for each in _measured(tuned))


def _listed(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def _measured(tuned: Mapping[str, Any]) -> Iterator[str]:
    """What `specdec tune` measured, as far as it is written down."""
    if {"plain", "speculative", "speed_up"} <= tuned.keys():
        ends = f" ({tuned['lowest']:.2f} to {tuned['highest']:.2f})" if {"lowest", "highest"} <= tuned.keys() else ""
        yield (
            f"plain {tuned['plain']:.1f} tokens/s, drafting {tuned['speculative']:.1f}: "
            f"{tuned['speed_up']:.2f} × plain{ends}"
        )
    if "reason" in tuned:
        yield tuned["reason"]


def _need_lines(title: str, need: Need) -> Iterator[str]:
    about, shape = need.description, need.description.shape
    yield _line(title, str(about.path))
    yield _line("", f"{shape.architecture}, {shape.layers} layers, trained for {shape.trained_context:,} tokens")
    kind = "/".join(part for part in (about.vocabulary.model or UNKNOWN, about.splitter) if part)
    named = ", ".join(f"{name} {token}" for name, token in about.special.items())
    yield _line("", f"tokenizer {kind}, {len(about.vocabulary.tokens):,} tokens; {named or 'no special ones named'}")
    yield _line("", f"goes back {WAYS_BACK[shape.rollback]}")
    states = f", states {gigabytes(need.states)}" if need.states else ""
    yield _line(
        "", f"weights {gigabytes(about.weights)}, cache of {need.context:,} tokens {gigabytes(need.cache)}{states}"
    )


def _agreement_lines(report: Report) -> Iterator[str]:
    agreement = report.agreement
    if agreement is None or report.draft is None:
        return
    if not agreement.difference:
        yield _line("tokens", "the same in both" + _padding(report))
    else:
        yield _line("tokens", f"{agreement.shared:.0%} of the target's are tokens of the draft too")
        yield _line("", f"the first difference: {agreement.difference}")
    ours, theirs = report.target.description.special, report.draft.description.special
    differing = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    if differing and not agreement.difference:
        named = ", ".join(f"{name} {ours.get(name, 'none')} and {theirs.get(name, 'none')}" for name in differing)
        yield _line("", f"special ones differ: {named} (the target's decide)")


def _padding(report: Report) -> str:
    """What to say about ids that only one of two equal vocabularies has."""
    assert report.draft is not None
    sizes = [len(each.description.vocabulary.tokens) for each in (report.target, report.draft)]
    return "" if sizes[0] == sizes[1] else f", but for {abs(sizes[0] - sizes[1]):,} at the end of one"
