"""The contexts of a session's models: kept from answer to answer, opened anew where an answer needs another kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specdec_cli.errors import UsageError
from specdec_cli.llama.cache_file import Saved, identify, read_cache, write_cache
from specdec_cli.llama.context import Context
from specdec_cli.llama.context_options import ContextOptions
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.weights import Weights
from specdec_cli.settings import DEFAULT_BATCH, ModelSettings


@dataclass(frozen=True, slots=True)
class Need:
    """What an answer needs of a context on `weights`; see `ContextOptions`."""

    weights: Weights
    size: int
    rows: int
    snapshots: int


class Caches:
    """A context at most for each role; `weights` are those that were just loaded.

    What tells their files from others is found out at once: later other files may be in their places.
    """

    def __init__(self, settings: ModelSettings, interrupt: Interrupt, weights: Sequence[Weights]) -> None:
        self._settings = settings
        self._identities = {each.role: self._identify(each) for each in weights}
        self._interrupt = interrupt
        self._contexts: dict[str, Context] = {}
        self._saved: dict[str, Saved] = {}

    def size(self, weights: Weights) -> int:
        """Tokens that the context on `weights` can hold; 0 if there is none."""
        return self._contexts[weights.role].size if weights.role in self._contexts else 0

    def open(self, needs: Sequence[Need]) -> list[Context]:
        """A context for each of `needs`: the one that there is if it does, with all that it holds.

        What does not do is freed before anything is opened. Of a model that is not needed now the context stays.

        Raises:
            ModelError: llama.cpp cannot make one.
        """
        wanted = {need.weights.role: self._options(need) for need in needs}
        for role, options in wanted.items():
            if role in self._contexts and not _does(self._contexts[role].options, options):
                self._contexts.pop(role).close()
        for need in needs:
            role = need.weights.role
            if role not in self._contexts:
                self._contexts[role] = Context(need.weights, wanted[role], self._interrupt)
        return [self._contexts[role] for role in wanted]

    def save(self, weights: Weights, folder: Path) -> None:
        """Write what the context on `weights` holds into a file of `folder`, if it holds anything.

        Raises:
            UsageError: it cannot be written, or the files of the weights were gone when these caches were made.
        """
        context = self._contexts.get(weights.role)
        if context is not None and (saved := context.save()).tokens:
            write_cache(_place(folder, weights), self._identity(weights), saved)

    def load(self, weights: Weights, folder: Path) -> None:
        """Read what was saved in `folder` for the context on `weights`, if anything; `restore` puts it there.

        Raises:
            UsageError: the file is damaged, of another model, or cannot be read; or otherwise as for `save`.
        """
        saved = read_cache(_place(folder, weights), self._identity(weights))
        if saved is not None:
            self._saved[weights.role] = saved

    def restore(self) -> list[str]:
        """Let the contexts that there are hold what was loaded for them, in place of what they hold; what does not fit.

        What was loaded for another is let go too: it may be gigabytes.
        """
        complaints = []
        saved, self._saved = self._saved, {}
        for role, context in self._contexts.items():
            if role not in saved:
                continue
            context.rewind(0)
            if not context.restore(saved[role]):
                held = len(saved[role].tokens)
                complaints.append(f"the saved cache of the {role}, {held} tokens, does not fit its {context.size}")
        return complaints

    def _identity(self, weights: Weights) -> bytes:
        identity = self._identities[weights.role]
        if isinstance(identity, UsageError):
            raise identity
        return identity

    def _identify(self, weights: Weights) -> bytes | UsageError:
        settings = self._settings
        adapters = settings.lora if weights.role == "target" else settings.draft_lora
        kinds = settings.cache_type_k, settings.cache_type_v, settings.flash_attn
        try:
            return identify([(weights.path, 1.0), *adapters], kinds)
        except UsageError as error:
            return error

    def close(self) -> None:
        """Free all of them."""
        for context in self._contexts.values():
            context.close()
        self._contexts, self._saved = {}, {}

    def _options(self, need: Need) -> ContextOptions:
        settings = self._settings
        threads = settings.threads if need.weights.role == "target" else settings.draft_threads
        return ContextOptions(
            size=need.size,
            batch=settings.batch_size or DEFAULT_BATCH,
            rows=need.rows,
            snapshots=0 if need.weights.can_roll_back else need.snapshots,
            threads=threads or 1,
            flash_attention=settings.flash_attn,
            cache_type_k=settings.cache_type_k,
            cache_type_v=settings.cache_type_v,
        )


def _place(folder: Path, weights: Weights) -> Path:
    return folder / f"{weights.role}.cache"


def _does(held: ContextOptions, wanted: ContextOptions) -> bool:
    """Whether a context of `held` serves as one of `wanted`: it may give more rows and keep more states."""
    enough = held.rows >= wanted.rows and held.snapshots >= wanted.snapshots
    return enough and replace(held, rows=wanted.rows, snapshots=wanted.snapshots) == wanted
