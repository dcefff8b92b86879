"""How hot the draft is: q may be any distribution, as long as the one that drew a token is the one in the test."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from specdec_cli.core.sampling.chain import SamplingChain

SHARE: Final = 0.85
"""Of the target's temperature. A small model is less sure than a big one, so q fits p better when it is colder.

Measured by `benchmarks/draft_temperature.py`: Σ min(p, q) rises by 0.1 to 0.6 points over the same temperature,
and learning the share online, also by how sure q is, does not get above this constant.
"""


def to_draft_chain(chain: SamplingChain, temperature: str = "auto") -> SamplingChain:
    """The chain that q goes through: that of the target at another `temperature`, which is auto, same or a number.

    Where `samplers` leaves temperature out, none acts on the target: auto then acts on q no more than on p, but a
    number is what the user says of q, and holds.
    """
    if temperature == "same":
        return chain
    if temperature == "auto":
        return replace(chain, temperature=SHARE * chain.temperature)
    named = "temperature" in chain.samplers
    samplers = chain.samplers if named else (*chain.samplers, "temperature")
    return replace(chain, temperature=float(temperature), samplers=samplers)
