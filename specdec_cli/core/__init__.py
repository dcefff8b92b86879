"""Speculative decoding as mathematics: arrays and keyed noise in, values out.

The words used everywhere in this package:

- **target**, p: the big model; its distribution after the whole sampling chain.
- **draft**, q: the proposer; the distribution that the drafted token was really sampled from.
- **draft length**, γ: how many tokens are drafted in a round.
- **round**: draft γ tokens, score γ + 1 positions in one target pass, accept a prefix, emit one more token.
- **accepted / correction / bonus**: the three kinds of emitted token: a kept draft; the token drawn from
  the residual after a rejection; the extra token after full acceptance (of γ = 0 drafts too).
- **examined**: accepted tokens plus the rejected one: positions where a decision was made.
- **alpha**, α: accepted / examined; the mean of Σ min(p, q) over examined positions estimates that of the
  token rule with less variance. The block rule keeps more than that, the coupled one less.
- **acceptance rate**: accepted / drafted, what other tools print.

This package knows nothing about files, clocks, terminals, llama.cpp or global randomness.
"""
