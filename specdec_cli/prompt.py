"""What the user asks: an argument, a file, standard input, or material with a question after it.

One rule. Material is the file given with -f (`-` is standard input), or else whatever is piped in. The
prompt is the material, an empty line, and the argument; or the one of them that there is. A byte order mark
is dropped, CRLF is LF, and one final newline of material does not count.
"""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path
from typing import Final

from specdec_cli.errors import UsageError
from specdec_cli.files import read_file
from specdec_cli.terminal import Terminal

PATIENCE: Final = 10.0
"""Seconds to wait for the first byte of a pipe when there is a prompt without it."""
PAUSE: Final = 0.05


def read_prompt(
    argument: str | None,
    file: str | None,
    terminal: Terminal,
    *,
    patience: float = PATIENCE,
    keeps_end: bool = False,
) -> str:
    """The prompt; may be blank. `patience` is for a pipe that there may be nothing to wait for.

    `keeps_end` counts a final newline of material: code that is to be filled in goes on from there.

    Raises:
        UsageError: there is none, a file cannot be read, or a pipe stays silent.
    """
    if file is not None and file != "-":
        material: str | None = _decoded(_read_file(Path(file)), terminal)
    elif terminal.reads_keys and file is None:
        material = None
    else:
        expected = argument is None or file == "-"
        material = _decoded(_read_pipe(terminal, None if expected else patience), terminal)
    if material is None and argument is None:
        raise UsageError("there is no prompt", hint='specdec generate "Your prompt", or -f FILE, or pipe text into it')
    if material is not None and not keeps_end:
        material = material.removesuffix("\n")
    return "\n\n".join(part for part in (material, argument) if part)


def read_text(name: str, terminal: Terminal) -> str:
    """All the text of a file, or of standard input for `-`; the final newline counts.

    Raises:
        UsageError: it cannot be read.
    """
    return _decoded(_read_pipe(terminal, None) if name == "-" else _read_file(Path(name), "text"), terminal)


def read_material(path: Path, terminal: Terminal) -> str:
    """The text of a file, by the same rule.

    Raises:
        UsageError: it cannot be read.
    """
    return _decoded(_read_file(path), terminal).removesuffix("\n")


def read_suffix(given: str, terminal: Terminal) -> str:
    """What follows an answer that fills in: the text of the file of that name, if there is one, or `given` itself.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        is_there = Path(given).exists() and not Path(given).is_dir()
    except (OSError, ValueError):  # a text that no file could be named by
        is_there = False
    if is_there:
        return _decoded(_read_file(Path(given)), terminal)
    if Path(given).suffix and not any(each.isspace() for each in given):
        terminal.notice(f"there is no file {given}: it is taken as the text to end with")
    return given


def _read_file(path: Path, kind: str = "prompt file") -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise UsageError(f"{kind} {path} cannot be read: {error.strerror}") from None


def _read_pipe(terminal: Terminal, patience: float | None) -> bytes:
    """All of standard input; if nothing comes for `patience` seconds, nothing is assumed to come.

    A thread reads, since only it can wait with a limit on every system. It reads without Python's buffer, whose
    lock it would still hold after Ctrl-C: Python aborts when it cannot close stdin.
    """
    source = getattr(terminal.stdin, "raw", terminal.stdin)
    received = io.BytesIO()
    failures: list[OSError] = []
    started, done = threading.Event(), threading.Event()

    def read() -> None:
        try:
            while (data := source.read(1 << 16)) != b"":
                if data is None:  # a pipe that does not block has nothing yet
                    time.sleep(PAUSE)
                    continue
                received.write(data)
                started.set()
        except OSError as error:
            failures.append(error)
        finally:
            started.set()
            done.set()

    threading.Thread(target=read, daemon=True).start()
    try:
        if not started.wait(patience):
            raise UsageError(
                f"standard input is open and said nothing for {patience:g} seconds",
                hint="add </dev/null to use the prompt alone, or -f - to wait for as long as it takes",
            )
        done.wait()
    except KeyboardInterrupt:
        terminal.write_message("\n" if terminal.reads_keys else "")  # below what was typed
        raise
    if failures:
        raise UsageError(f"standard input cannot be read: {failures[0].strerror}")
    return received.getvalue()


def _decoded(data: bytes, terminal: Terminal) -> str:
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    damaged = text.count("\ufffd") - data.count("\ufffd".encode())
    if damaged > 0:
        terminal.notice(f"what is not UTF-8 in the input was replaced by \ufffd, {damaged} ×")
    return text
