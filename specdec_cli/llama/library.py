"""The llama.cpp library itself: importing it, its log, and the last line of defence against its assertions.

What it gives up on cannot be caught: a failed assertion, an exception that C++ throws through a C call, or a worker
that is lost. Each ends this process, but not before the handler of `on_abort` could say so in one line.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from specdec_cli.errors import EXIT_MODEL, ModelError

ERROR, CONTINUED = 4, 5
"""Levels of ggml's log."""
KEPT_LINES: Final = 400
LONGEST_LINE: Final = 300


@dataclass(frozen=True, slots=True)
class Build:
    """What was built: versions of the bindings and of ggml, its commit, backends, and each one's flags.

    A flag is a name such as `AVX2` if it is on, `NAME=VALUE` if it is something else than 1.
    """

    bindings: str
    ggml: str | None
    commit: str | None
    backends: tuple[str, ...]
    features: Mapping[str, tuple[str, ...]]


_log: deque[tuple[int, str]] = deque(maxlen=KEPT_LINES)
_sink: Callable[[str], object] | None = None
_on_abort: Callable[[str], int | None] | None = None
_giving_up = threading.RLock()
_task = ""


@cache
def llama() -> Any:
    """The bindings' module, loaded once, logging into `log_errors` instead of stderr.

    Raises:
        ModelError: it is not installed, or its shared library does not load.
    """
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # else it runs a debugger on this process as it dies
    try:
        import llama_cpp
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelError(
            f"llama-cpp-python does not load: {_one_line(str(error))}",
            hint="reinstall it with: pip install --force-reinstall llama-cpp-python",
        ) from error
    llama_cpp.llama_log_set(_log_callback(llama_cpp), ctypes.c_void_p(None))
    ggml("ggml_set_abort_callback", ctypes.c_void_p, (_ABORT_TYPE,))(_abort_callback)
    _catch_exceptions()
    llama_cpp.llama_backend_init()
    return llama_cpp


@cache
def ggml(name: str, result: Any, arguments: tuple[Any, ...] = ()) -> Any:
    """A function of ggml that the bindings do not wrap.

    Found through the handle of libllama where that searches its dependencies: wheels hold libggml-base
    several times under different names, and opening it by path would load a second copy of its globals.
    """
    from llama_cpp import _ctypes_extensions, llama_cpp

    function = getattr(llama_cpp._lib, name, None)
    if function is None:
        libraries = ("ggml-base", "ggml")
        opened = [_ctypes_extensions.load_shared_library(each, llama_cpp._base_path) for each in libraries]
        function = next((getattr(each, name) for each in opened if hasattr(each, name)), None)
    if function is None:
        raise AttributeError(f"llama.cpp has no {name}")
    function.restype, function.argtypes = result, list(arguments)
    return function


def build() -> Build:
    """How the library that runs was built.

    Raises:
        ModelError: it does not load.
    """
    features: dict[str, list[str]] = {}
    backend = ""
    for part in llama().llama_print_system_info().decode("utf-8", "replace").split("|"):
        named, has_name, flag = part.rpartition(" : ")
        backend = named.strip() if has_name else backend
        name, _, value = (each.strip() for each in flag.partition("="))
        if name:
            features.setdefault(backend, []).append(name if value == "1" else f"{name}={value}")
    registry = ggml("ggml_backend_reg_get", ctypes.c_void_p, (ctypes.c_size_t,))
    name_of = ggml("ggml_backend_reg_name", ctypes.c_char_p, (ctypes.c_void_p,))
    count = ggml("ggml_backend_reg_count", ctypes.c_size_t)()
    return Build(
        bindings=str(llama().__version__),
        ggml=_told("ggml_version"),
        commit=_told("ggml_commit"),
        backends=tuple(name_of(registry(index)).decode() for index in range(count)),
        features={name: tuple(flags) for name, flags in features.items()},
    )


def _told(function: str) -> str | None:
    """What a function of ggml that older ones lack says of itself."""
    try:
        told: bytes | None = ggml(function, ctypes.c_char_p)()
    except AttributeError:
        return None
    return told.decode("utf-8", "replace") if told else None


def show_log(sink: Callable[[str], object] | None) -> None:
    """Also pass every line of llama.cpp's log to `sink`, as it comes; None stops that."""
    global _sink
    _sink = sink


def on_abort(handler: Callable[[str], int | None] | None) -> None:
    """Call `handler` with what C code says as it gives up; then this process ends with the code it returns, or 3.

    It may run in any thread, while the main one waits inside C for ever: it must not wait for that. Without a handler
    a line on stderr says so. A program that calls us from its own Python ends too: what its streams hold is written,
    but no `finally` and no exit handler runs, for C code would not return to it.
    """
    global _on_abort
    _on_abort = handler


@contextmanager
def during(task: str) -> Iterator[None]:
    """Name what C code does inside, for the message that `on_abort` gets should it give up."""
    global _task
    _task = task
    try:
        yield
    finally:
        _task = ""


def log_errors() -> str:
    """The most telling error that llama.cpp logged since `clear_log`, as one short line; empty if there is none."""
    errors = [_one_line(text) for level, text in _log if level == ERROR and text.strip()]
    telling = [line for line in errors if not line.startswith(("failed to load model", "error loading model"))]
    cause = re.compile(r"^error loading model: (\w+_\w+: )?")
    causes = [cause.sub("", line) for line in errors if cause.match(line)]
    return (causes or telling or errors or [""])[0]


def clear_log() -> None:
    """Forget what was logged, before a call whose errors matter."""
    _log.clear()


def _one_line(text: str) -> str:
    """`text` without line breaks and without the C function that logged it, cut where it gets too long to read."""
    line = re.sub(r"^\w+: ", "", " ".join(text.split()))
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


@cache
def _log_callback(llama_cpp: Any) -> Any:
    def record(level: int, text: bytes, _: Any) -> None:
        line = text.decode("utf-8", "replace")
        _log.append((_log[-1][0] if level == CONTINUED and _log else level, line))
        if _sink is not None:
            _sink(line)

    return llama_cpp.llama_log_callback(record)


def _catch_exceptions() -> None:
    """Hear of exceptions that nothing in C++ catches; Microsoft's runtime has no such function."""
    try:
        ggml("_ZSt13set_terminatePFvvE", ctypes.c_void_p, (_TERMINATE_TYPE,))(_terminate_callback)
    except (AttributeError, OSError):
        return


def _report_abort(message: bytes) -> None:
    where, _, what = message.decode("utf-8", "replace").partition(": ")
    _give_up(_one_line(what or where))


def _report_exception() -> None:
    _give_up("an exception that it does not handle")


def _give_up(reason: str) -> None:
    """End this process instead of letting C abort it; a second thread that gives up too waits here for that."""
    global _on_abort
    code: int | None = None
    with _giving_up:
        message = f"{_task}: {reason}" if _task else reason
        say, _on_abort = _on_abort or _say, None  # should C give up on what the handler does, that is the end
        try:
            code = say(message)
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):  # closed, or nobody reads it
                    stream.flush()
        finally:
            os._exit(EXIT_MODEL if code is None else code)


def _say(message: str) -> None:
    sys.stderr.write(f"llama.cpp stopped: {message}\n")


_ABORT_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_abort_callback = _ABORT_TYPE(_report_abort)
_TERMINATE_TYPE = ctypes.CFUNCTYPE(None)
_terminate_callback = _TERMINATE_TYPE(_report_exception)
