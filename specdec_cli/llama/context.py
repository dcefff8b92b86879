"""A cache of evaluated tokens on top of loaded weights: llama.cpp as the core's `Model`."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from specdec_cli.core.top_k import Logits
from specdec_cli.errors import ModelError
from specdec_cli.llama.adapters import apply_adapters
from specdec_cli.llama.cache_file import Saved
from specdec_cli.llama.context_options import ContextOptions, to_params
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import clear_log, during, llama, log_errors
from specdec_cli.llama.losses import explain_refusal
from specdec_cli.llama.snapshots import MOST_OWED, Snapshots
from specdec_cli.llama.weights import Weights

ABORTED: Final = 2
MOST_STATES: Final = 16
"""States of a pass that llama.cpp is asked to write at most; each takes megabytes (20 in Qwen3.5 0.8B)."""


class Context:
    """Sequence 0 of a llama.cpp context. `evaluated` tokens took `seconds` so far; `tokens` are those it holds.

    Logits are asked for on as few rows as a round needs: llama.cpp otherwise reserves compute buffers for
    `batch` × vocabulary floats (300 MB at 512 × 152k).

    Raises:
        ModelError: llama.cpp cannot make a context with these options.
    """

    def __init__(self, weights: Weights, options: ContextOptions, interrupt: Interrupt) -> None:
        self.seconds = 0.0
        self.evaluated = 0
        self.tokens: list[int] = []
        self.options = options
        self.size = options.size
        self.is_remote = weights.placement.is_remote
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
        params = to_params(options, self._batch_size)
        params.abort_callback = self._interrupt.callback
        params.abort_callback_data = self._interrupt.data
        params.n_rs_seq = states
        params.n_seq_max = 1 + slots
        params.n_outputs_max = max(options.rows, 1 + slots)  # it reserves a row for each sequence
        params.kv_unified = slots > 0
        clear_log()
        with during(self._task):
            context = llama().llama_init_from_model(self._weights.model, params)
        if not context:
            said = log_errors() or "there may not be enough memory"
            reason, hint = explain_refusal(said, "try a smaller --ctx-size, or other --cache-type-k/v and --flash-attn")
            task = f"no context of {options.size} tokens for {self._weights.role} {self._weights.path}"
            raise ModelError(f"{task}: {reason}", hint=hint)
        return context

    @property
    def length(self) -> int:
        """See `Model.length`."""
        return len(self.tokens)

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
            llama().llama_synchronize(self._context)
            start += count
        return self._rows(count - rows, rows) if rows else ()

    def _with_owed(self, tokens: Sequence[int], rows: int) -> Sequence[int]:
        """`tokens` after those that a rewind left owed. The state is kept before a pass that rows are drawn from."""
        if self._snapshots is None:
            return tokens
        owed = self.tokens[self._snapshots.held :]
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
        # ggml waits for a worker only where it reads from it, and what is not waited for cannot be timed or stopped
        read = max(rows, int(self.is_remote))
        self._wanted[: count - read] = 0
        self._wanted[count - read : count] = 1
        self._batch.n_tokens = count
        clear_log()
        try:
            with during(self._task):
                status = llama().llama_decode(self._context, self._batch)
        except BaseException:  # a second Ctrl-C
            self._recover(tokens)
            raise
        if status == 0:
            if self._snapshots is not None:
                self._snapshots.record(count)
            self.tokens[held : held + count] = tokens
            self.evaluated += count
            return
        self._recover(tokens)
        if status == ABORTED:
            raise KeyboardInterrupt
        reason, hint = explain_refusal(
            log_errors() or f"code {status}", "there may not be enough memory; try a smaller --ctx-size or --batch-size"
        )
        raise ModelError(f"{self._weights.role} {self._weights.path} failed while evaluating: {reason}", hint=hint)

    def _recover(self, tokens: Sequence[int]) -> None:
        """After a pass over `tokens` that was broken off: llama.cpp takes rows back, but not what it did to a state."""
        if self._snapshots is None:
            held = int(llama().llama_memory_seq_pos_max(self._memory, 0)) + 1
            self.tokens += tokens[: held - self.length]
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
        del self.tokens[length:]

    def save(self) -> Saved:
        """What the cache holds, but for tokens that a recurrent model owes."""
        held = self.length if self._snapshots is None else self._snapshots.held
        state = bytearray(llama().llama_state_seq_get_size(self._context, 0))
        with during(self._task):
            written = llama().llama_state_seq_get_data(self._context, _bytes_in(state), len(state), 0)
        return Saved(self.tokens[:held], memoryview(state)[:written])

    def restore(self, saved: Saved) -> bool:
        """Let this cache, which must be empty, hold what another one of the same model did; whether it could."""
        if not 0 < len(saved.tokens) <= self.size:
            return False
        state = bytearray(saved.state)
        with during(self._task):
            llama().llama_state_seq_set_data(self._context, _bytes_in(state), len(state), 0)
        if llama().llama_memory_seq_pos_max(self._memory, 0) != len(saved.tokens) - 1:
            llama().llama_memory_seq_rm(self._memory, 0, -1, -1)
            return False
        self.tokens = list(saved.tokens)
        if self._snapshots is not None:
            self._snapshots.record(len(saved.tokens))
        return True

    def close(self) -> None:
        """Free the cache and its buffers."""
        if self._context is not None:
            llama().llama_batch_free(self._batch)
            llama().llama_free(self._context)
            self._context = None


def _bytes_in(buffer: bytearray) -> Any:
    """The memory of `buffer`, for C to read and write."""
    return (ctypes.c_uint8 * len(buffer)).from_buffer(buffer)
