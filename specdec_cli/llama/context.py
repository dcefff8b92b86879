"""A cache of evaluated tokens on top of loaded weights: llama.cpp as the core's `Model`."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from specdec_cli.core.top_k import Logits
from specdec_cli.errors import ModelError
from specdec_cli.llama.adapters import apply_adapters
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import clear_log, during, llama, log_errors
from specdec_cli.llama.snapshots import MOST_OWED, Snapshots
from specdec_cli.llama.weights import Weights

PHYSICAL_BATCH: Final = 512
"""llama.cpp's own n_ubatch: tokens that are computed at once within a batch."""

CACHE_TYPES: Final = {
    "f32": 0,
    "f16": 1,
    "bf16": 30,
    "q8_0": 8,
    "q4_0": 2,
    "q4_1": 3,
    "iq4_nl": 20,
    "q5_0": 6,
    "q5_1": 7,
}
FLASH_ATTENTION: Final = {"auto": -1, "off": 0, "on": 1}
ABORTED: Final = 2
MOST_STATES: Final = 16
"""States of a pass that llama.cpp is asked to write at most; each takes megabytes (20 in Qwen3.5 0.8B)."""


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """`size` tokens of cache; `batch` tokens a call at most; `rows` rows of logits a call at most.

    `snapshots` is how many states of a recurrent or hybrid model are kept to go back to: as many as there are
    passes for rows between two rewinds, so 0 in plain decoding, 1 for a target that speculates, and for its
    draft as many as it drafts. Other models keep none.
    """

    size: int
    batch: int
    rows: int
    threads: int
    flash_attention: str = "auto"
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    snapshots: int = 0


class Context:
    """Sequence 0 of a llama.cpp context. `seconds` is the time spent evaluating so far.

    Logits are asked for on as few rows as a round needs: llama.cpp otherwise reserves compute buffers for
    `batch` × vocabulary floats (300 MB at 512 × 152k).

    Raises:
        ModelError: llama.cpp cannot make a context with these options.
    """

    def __init__(self, weights: Weights, options: ContextOptions, interrupt: Interrupt) -> None:
        self.seconds = 0.0
        self.length = 0
        self.size = options.size
        self._weights = weights
        self._interrupt = interrupt
        self._prompt_batch = options.batch
        self._batch_size = max(options.batch, options.rows + 1)
        self._row_type: Any = ctypes.c_float * weights.vocabulary_size
        self._task = f"evaluating {weights.role} {weights.path}"
        self._context, slots = self._open(options)
        self._memory = llama().llama_get_memory(self._context)
        self._snapshots = None if weights.can_roll_back else Snapshots(self._context, slots)
        apply_adapters(self._context, weights.adapters)
        self._batch = llama().llama_batch_init(self._batch_size, 0, 1)
        self._tokens = np.ctypeslib.as_array(self._batch.token, (self._batch_size,))
        self._positions = np.ctypeslib.as_array(self._batch.pos, (self._batch_size,))
        self._wanted = np.ctypeslib.as_array(self._batch.logits, (self._batch_size,))
        np.ctypeslib.as_array(self._batch.n_seq_id, (self._batch_size,))[:] = 1
        for index in range(self._batch_size):
            self._batch.seq_id[index][0] = 0

    def _open(self, options: ContextOptions) -> tuple[Any, int]:
        """A context of llama.cpp, and how many snapshots it has room for.

        Some recurrent models write every state of a pass if asked to (n_rs_seq), and need no snapshots; whether
        one does can only be seen from a context. A draft has a single state a pass.
        """
        if self._weights.can_roll_back or options.snapshots == 0:
            return self._init(options), 0
        if 1 < options.rows <= MOST_STATES + 1:
            context = self._init(options, states=options.rows - 1)
            if llama().llama_n_rs_seq(context):
                return context, 0
            llama().llama_free(context)
        return self._init(options, slots=options.snapshots), options.snapshots

    def _init(self, options: ContextOptions, *, states: int = 0, slots: int = 0) -> Any:
        params = self._params(options)
        params.n_rs_seq = states
        params.n_seq_max = 1 + slots
        params.n_outputs_max = max(options.rows, 1 + slots)  # it reserves a row for each sequence
        params.kv_unified = slots > 0
        clear_log()
        with during(self._task):
            context = llama().llama_init_from_model(self._weights.model, params)
        if not context:
            reason = log_errors() or "there may not be enough memory"
            raise ModelError(
                f"no context of {options.size} tokens for {self._weights.role} {self._weights.path}: {reason}",
                hint="try a smaller --ctx-size, or other --cache-type-k/v and --flash-attn",
            )
        return context

    def _params(self, options: ContextOptions) -> Any:
        params = llama().llama_context_default_params()
        params.n_ctx = options.size
        params.n_batch = self._batch_size
        params.n_ubatch = min(PHYSICAL_BATCH, self._batch_size)
        params.n_threads = params.n_threads_batch = options.threads
        params.flash_attn_type = FLASH_ATTENTION[options.flash_attention]
        params.type_k = CACHE_TYPES[options.cache_type_k]
        params.type_v = CACHE_TYPES[options.cache_type_v]
        params.swa_full = True
        params.no_perf = True
        params.abort_callback = self._interrupt.callback
        params.abort_callback_data = self._interrupt.data
        return params

    def extend(self, tokens: Sequence[int], rows: int) -> Sequence[Logits]:
        """See `Model.extend`. Long input goes in batches, those of a prompt the same whatever the draft length.

        The wanted rows are always in the last batch.

        Raises:
            ModelError: the cache is full, or llama.cpp failed.
            KeyboardInterrupt: Ctrl-C; the cache holds a prefix of the tokens.
        """
        if self._context is None:
            raise ModelError("the cache of this answer is closed", hint="a later answer of the same session ended it")
        if self.length + len(tokens) > self.size:
            raise ModelError(f"{self.length + len(tokens)} tokens do not fit a context of {self.size}")
        started = time.perf_counter()
        try:
            return self._extend(self._with_owed(tokens, rows), rows)
        finally:
            self.seconds += time.perf_counter() - started

    def _extend(self, tokens: Sequence[int], rows: int) -> Sequence[Logits]:
        start, limit = 0, self._batch_size if rows else self._prompt_batch
        while start < len(tokens):
            rest = len(tokens) - start
            count = rest if rest <= limit else min(limit, rest - rows)
            self._evaluate(tokens[start : start + count], rows if count == rest else 0)
            start += count
        llama().llama_synchronize(self._context)
        return self._rows(count - rows, rows) if rows else ()

    def _with_owed(self, tokens: Sequence[int], rows: int) -> Sequence[int]:
        """`tokens` after those that a rewind left owed. The state is kept before a pass that rows are drawn from."""
        if self._snapshots is None:
            return tokens
        owed = self._snapshots.owed()
        if len(owed) > MOST_OWED:
            self._extend(owed, rows=0)
            owed = []
        if rows:
            self._snapshots.take()
        return [*owed, *tokens]

    def _evaluate(self, tokens: Sequence[int], rows: int) -> None:
        """One call of llama_decode on at most a batch of `tokens`, with logits on the last `rows`."""
        self._interrupt.check()
        count = len(tokens)
        self._tokens[:count] = tokens
        held = self.length if self._snapshots is None else self._snapshots.held
        self._positions[:count] = range(held, held + count)
        self._wanted[: count - rows] = 0
        self._wanted[count - rows : count] = 1
        self._batch.n_tokens = count
        clear_log()
        with during(self._task):
            status = llama().llama_decode(self._context, self._batch)
        if status == 0:
            if self._snapshots is not None:
                self._snapshots.record(tokens)
            self.length = max(self.length, held + count)
            return
        self._recover()
        if status == ABORTED:
            raise KeyboardInterrupt
        raise ModelError(
            f"{self._weights.role} {self._weights.path} failed while evaluating: {log_errors() or f'code {status}'}",
            hint="there may not be enough memory; try a smaller --ctx-size or --batch-size",
        )

    def _recover(self) -> None:
        """After a pass that was broken off: llama.cpp takes its rows back, but not what it did to a state."""
        if self._snapshots is None:
            self.length = int(llama().llama_memory_seq_pos_max(self._memory, 0)) + 1
        else:
            self._snapshots.restore(self.length)

    def _rows(self, first: int, count: int) -> Sequence[Logits]:
        """The logits of the last `count` tokens, from token `first` of the last batch on: views, not copies.

        llama.cpp keeps the rows that were asked for one behind the other.
        """
        pointer = llama().llama_get_logits_ith(self._context, first)
        table = (self._row_type * count).from_address(ctypes.addressof(pointer.contents))
        return list(np.frombuffer(table, np.float32).reshape(count, -1))

    def rewind(self, length: int) -> None:
        """See `Model.rewind`. A recurrent model may owe a few of the tokens that are left to the next pass.

        Raises:
            ModelError: this kind of model cannot take tokens back.
        """
        if self._context is None:
            return
        if self._snapshots is not None:
            started = time.perf_counter()
            self._snapshots.go_back(length)
            self.seconds += time.perf_counter() - started
        elif length != self.length and not llama().llama_memory_seq_rm(self._memory, 0, length, -1):
            raise ModelError(
                f"{self._weights.role} {self._weights.path} cannot take back evaluated tokens",
                hint="use --draft none with this model",
            )
        self.length = length

    def close(self) -> None:
        """Free the cache and its buffers."""
        if self._context is not None:
            llama().llama_batch_free(self._batch)
            llama().llama_free(self._context)
            self._context = None
