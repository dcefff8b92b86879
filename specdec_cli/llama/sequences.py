"""Many independent texts in one context of llama.cpp, each a token further a pass: how to get much text soon.

Each sequence has a cache of its own (`kv_unified` off): in one that all share, every token is compared with the
tokens of all others too, and of SmolLM2-135M with 64 sequences that takes more time than all its matrices.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from specdec_cli.core.top_k import Logits
from specdec_cli.errors import ModelError
from specdec_cli.llama.adapters import apply_adapters
from specdec_cli.llama.context_options import ContextOptions, to_params
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import clear_log, during, llama, log_errors
from specdec_cli.llama.weights import Weights

Rows = npt.NDArray[np.float32]
"""[n, vocabulary]."""


class Sequences:
    """`count` texts of up to `options.size` tokens each, on `weights`.

    Raises:
        ModelError: llama.cpp cannot make such a context.
    """

    def __init__(self, weights: Weights, interrupt: Interrupt, count: int, options: ContextOptions) -> None:
        self._weights = weights
        self._interrupt = interrupt
        self._lengths = [0] * count
        self._limit = options.batch
        self._task = f"evaluating {weights.role} {weights.path}"
        params = to_params(replace(options, size=count * options.size), options.batch)
        params.n_seq_max = params.n_outputs_max = count
        params.kv_unified = False
        params.abort_callback = interrupt.callback
        params.abort_callback_data = interrupt.data
        clear_log()
        with during(self._task):
            self._context: Any = llama().llama_init_from_model(weights.model, params)
        if not self._context:
            said = log_errors() or "there may not be enough memory"
            task = f"no context for {count} texts of {options.size} tokens each"
            raise ModelError(f"{task}: {said}", hint="ask for fewer at once, or for shorter ones")
        apply_adapters(self._context, weights.adapters)
        self._memory = llama().llama_get_memory(self._context)
        self._batch = llama().llama_batch_init(options.batch, 0, 1)

    def begin(self, index: int, tokens: Sequence[int]) -> Logits:
        """Let sequence `index` be `tokens`; a view on its row of logits [vocabulary], which the next call changes.

        Raises:
            ModelError: llama.cpp failed.
            KeyboardInterrupt: Ctrl-C.
        """
        llama().llama_memory_seq_rm(self._memory, index, -1, -1)
        self._lengths[index] = 0
        for first in range(0, len(tokens), self._limit):
            part = tokens[first : first + self._limit]
            self._evaluate([index] * len(part), part, rows=1)
        row: Logits = self._rows(1)[0]
        return row

    def advance(self, indices: Sequence[int], tokens: Sequence[int]) -> Rows:
        """Add a token to each of the sequences `indices` [n], ascending; a view on their logits [n, vocabulary].

        llama.cpp evaluates sequences together only as far as their numbers follow on each other.

        Raises:
            ModelError: llama.cpp failed.
            KeyboardInterrupt: Ctrl-C.
        """
        self._evaluate(indices, tokens, rows=len(indices))
        return self._rows(len(indices))

    def _evaluate(self, indices: Sequence[int], tokens: Sequence[int], *, rows: int) -> None:
        self._interrupt.check()
        batch, count = self._batch, len(tokens)
        for place, (index, token) in enumerate(zip(indices, tokens, strict=True)):
            batch.token[place] = token
            batch.pos[place] = self._lengths[index]
            batch.n_seq_id[place] = 1
            batch.seq_id[place][0] = index
            batch.logits[place] = place >= count - rows
            self._lengths[index] += 1
        batch.n_tokens = count
        clear_log()
        with during(self._task):
            status = llama().llama_decode(self._context, batch)
            llama().llama_synchronize(self._context)
        self._interrupt.check()
        if status:
            reason = log_errors() or f"code {status}"
            raise ModelError(f"{self._weights.role} {self._weights.path} failed while evaluating: {reason}")

    def _rows(self, count: int) -> Rows:
        kind: Any = ctypes.c_float * (count * self._weights.vocabulary_size)
        pointer = llama().llama_get_logits(self._context)
        flat = np.frombuffer(kind.from_address(ctypes.addressof(pointer.contents)), np.float32)
        return flat.reshape(count, -1)

    def close(self) -> None:
        """Free the context; the weights stay."""
        llama().llama_batch_free(self._batch)
        llama().llama_free(self._context)

    def __enter__(self) -> Sequences:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
