"""How a context goes back where llama.cpp cannot: recurrent and hybrid models have a state, not a row for each token.

Their state is kept by copying the sequence to another one of the same memory. That only shares it: the next
pass finds the state shared and writes its own elsewhere. So nothing is moved on any device, any number of
states can be kept, and a pass that is broken off spoils none of them. Going back restores the newest state
that is old enough; what lies between it and the wanted length is owed, and evaluated together with what
comes next. Attention rows of a hybrid model can be removed, so they are left out of the copies: to share 32,000
of them takes 2.5 ms.

Some architectures can do better: they write the state after each of the last tokens of a pass (n_rs_seq), and
llama.cpp goes back to those by itself. It does not check how many those are: of a pass of three tokens only
two can be taken back, whatever n_rs_seq is, or it goes on from a state that an earlier pass left there.
"""

from __future__ import annotations

from typing import Any, Final

from specdec_cli.llama.library import llama

EVERYTHING: Final = (-1, -1)
"""Positions of a whole sequence."""
NO_ROWS: Final = (0, 0)
"""Positions of no attention row; a state is copied whatever they are."""
MOST_OWED: Final = 4
"""How many owed tokens go along with the next ones; more get a pass of their own, after which a state is kept."""


class Snapshots:
    """The states of sequence 0 of `context` that its other sequences, 1 to `slots`, keep.

    It always finds a way back: without a state that is old enough the memory is emptied, and all is owed.
    `held` is how many tokens the memory holds; the context's others it has to be given again.
    """

    def __init__(self, context: Any, slots: int) -> None:
        self.held = 0
        self._memory = llama().llama_get_memory(context)
        self._states = llama().llama_n_rs_seq(context)
        self._retractable = 0
        self._free = list(range(1, slots + 1))
        self._kept: list[tuple[int, int]] = []

    def record(self, count: int) -> None:
        """A pass has evaluated `count` tokens, the owed ones first."""
        self.held += count
        self._retractable = min(self._states, count - 1)

    def take(self) -> None:
        """Keep the present state, in place of the oldest if there is no free slot."""
        if not self._free and self._kept:
            self._drop(self._kept[0])
        if self._free:
            sequence = self._free.pop()
            llama().llama_memory_seq_cp(self._memory, 0, sequence, *NO_ROWS)
            self._kept.append((self.held, sequence))

    def go_back(self, length: int) -> None:
        """Forget all but the first `length` tokens, and the states after them."""
        if self.held > length and not self._retract(length):
            self.restore(length)

    def _retract(self, length: int) -> bool:
        """Let llama.cpp go back by itself; whether it could."""
        if self.held - length > self._retractable or not llama().llama_memory_seq_rm(self._memory, 0, length, -1):
            return False
        self.held = length
        return True

    def restore(self, length: int) -> None:
        """Go back to the newest state of `length` tokens at most, even if a broken-off pass wrote half of its own."""
        while self._kept and self._kept[-1][0] > length:
            self._drop(self._kept[-1])
        self.held = 0
        if self._kept and self._brought_back(*self._kept[-1]):
            self.held = self._kept[-1][0]
        else:
            llama().llama_memory_seq_rm(self._memory, 0, *EVERYTHING)

    def _brought_back(self, length: int, sequence: int) -> bool:
        """Whether the memory now holds `length` tokens, their state that of `sequence`."""
        llama().llama_memory_seq_cp(self._memory, sequence, 0, *NO_ROWS)
        removed = llama().llama_memory_seq_rm(self._memory, 0, length, -1)
        return bool(removed) and llama().llama_memory_seq_pos_max(self._memory, 0) == length - 1

    def _drop(self, kept: tuple[int, int]) -> None:
        llama().llama_memory_seq_rm(self._memory, kept[1], *EVERYTHING)
        self._kept.remove(kept)
        self._free.append(kept[1])
