"""What one target pass says of a block: p at each position, and the log-probabilities of what is emitted there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.logprobs import TokenLogprobs, token_logprobs
from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.masking import NothingAllowedError
from specdec_cli.core.top_k import Logits

NO_TOKEN: Final = 2**31 - 1
"""In place of a token where a mask allows none: the text is over if it is whole, and else cannot go on."""


class Scores:
    """What one target pass says: p after the past and the first i drafted tokens, each worked out when asked for."""

    def __init__(self, rows: Sequence[Logits], chain: SamplingChain, past: Past, drafted: Sequence[int]) -> None:
        self._rows = rows
        self._chain = chain
        self._pasts = [past]
        self._drafted = drafted
        self._laws: dict[int, Distribution] = {}
        self.is_whole = False
        """Whether the text may end where nothing is allowed to follow."""

    def __call__(self, position: int) -> Distribution:
        """p after the first `position` drafted tokens.

        Raises:
            NothingAllowedError: the mask allows no first token, and the text is not whole.
        """
        if position not in self._laws:
            while len(self._pasts) <= position:
                self._pasts.append(self._pasts[-1].followed_by(self._drafted[len(self._pasts) - 1]))
            self._laws[position] = self._law(position)
        return self._laws[position]

    def _law(self, position: int) -> Distribution:
        """p. It is `NO_TOKEN` where the mask allows no token, unless none comes before it and the text is not whole."""
        past = self._pasts[position]
        try:
            return self._chain.distribution(self._rows[position], past)
        except NothingAllowedError:
            self.is_whole = past.mask is not None and past.mask.may_end
            if position == 0 and not self.is_whole:
                raise
            return Distribution.one_hot(NO_TOKEN)

    def logprobs(self, tokens: Sequence[int], count: int | None) -> tuple[TokenLogprobs, ...]:
        """Those of `tokens`, the first of which is at the first row, with `count` alternatives each."""
        if count is None:
            return ()
        said = enumerate(token for token in tokens if token != NO_TOKEN)
        return tuple(token_logprobs(self._rows[at], self(at), token, count) for at, token in said)
