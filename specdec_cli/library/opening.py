"""Opening a pair by its name or by its files."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, Unpack

from specdec_cli.catalog import Pair, find_pair, pair_of_file, to_draft
from specdec_cli.errors import EXIT_MODEL, UsageError
from specdec_cli.library.opened import OpenPair
from specdec_cli.library.wishes import Loading, to_settings
from specdec_cli.llama.library import on_abort
from specdec_cli.llama.losses import explain_loss
from specdec_cli.session import Session
from specdec_cli.settings import Listener

LOG: Final = logging.getLogger("specdec_cli")
"""Who is told of what a user of the command line reads as a note."""


def open_pair(
    target: str | Path | None = None,
    *,
    draft: str | Path | None = None,
    config: str | Path | None = None,
    progress: Callable[[str, float | None], None] = lambda _task, _share: None,
    **loading: Unpack[Loading],
) -> OpenPair:
    """Load a pair: by its name in models.toml, the default one, or a GGUF file with a `draft` as the command line has.

    A text is a file if it ends with `.gguf` or holds a slash. `progress` is told what takes a while, with the share
    that is done, 0..1, if that is known.

    Raises:
        UsageError: there is no such pair, a models.toml is wrong, or an option is out of range.
        ModelError: a file is not here or no model, or the two do not fit.
        KeyboardInterrupt: Ctrl-C while loading.
    """
    settings = to_settings(loading)
    on_abort(_say_last_words)
    pair = _find(target, draft, None if config is None else Path(config))
    return OpenPair(Session(pair, settings, Listener(progress, LOG.warning)))


def _say_last_words(message: str) -> int:
    """What ends this process, in one line that names the worker if one is lost."""
    said, hint = explain_loss(message) or (f"llama.cpp stopped: {message}", "")
    sys.stderr.write(f"specdec: {said}{f'; {hint}' if hint else ''}\n")
    return EXIT_MODEL


def _find(target: str | Path | None, draft: str | Path | None, config: Path | None) -> Pair:
    given = None if draft is None else to_draft(str(draft), Path())
    if target is None or (isinstance(target, str) and not _is_file(target)):
        return find_pair(target, config, given)
    if config is not None:
        raise UsageError("config is about pairs, and the target is a file", hint="give one of them")
    return pair_of_file(Path(target), given)


def _is_file(text: str) -> bool:
    return text.endswith(".gguf") or "/" in text or "\\" in text
