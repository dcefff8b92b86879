"""What a draft is taught by: its cross entropy against what the target could have said, and then α itself too.

Logits of thousands of positions over thousands of rows would fill the memory. They are made a part at a time, and what
they contribute to the gradients is worked out at once.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

PART: Final = 512
"""Positions whose logits are held at once."""
LEAST: Final = 1e-3
"""α below that counts as that: its logarithm has no bound."""


class Disagreement(torch.autograd.Function):
    """(1 - s) · (-Σ p · log q) - s · log Σ min(p, q), with q = softmax(h Eᵀ + bias): the mean over positions.

    `states` h [m, width], `head` E [rows, width], `bias` [rows], `share` s; p is 0 but for `chances` [m, k] of the
    rows `likely` [m, k], which add up to 1 or, where nothing is to be learned, to 0.
    The cross entropy spreads q over all that p may say, which a small draft cannot follow; the other part gives up what
    it cannot follow for the sake of α. The value is that of the cross entropy, to compare trainings by.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, head: Tensor, bias: Tensor, likely: Tensor, chances: Tensor, share: float
    ) -> Tensor:
        """The cross entropy; the gradients are kept."""
        small_head = head.to(torch.bfloat16)
        for_states, for_head = torch.empty_like(states), torch.zeros_like(head)
        total = torch.zeros((), device=states.device)
        for first in range(0, len(states), PART):
            part = slice(first, first + PART)
            h, rows, p = states[part].to(torch.bfloat16), likely[part], chances[part]
            logits = (h @ small_head.T).float() + bias
            whole = torch.logsumexp(logits, dim=1, keepdim=True)
            log_q = logits.gather(1, rows) - whole
            total -= (p * log_q).sum()
            q = log_q.exp()
            below = torch.where(q < p, q, 0)
            alpha = torch.minimum(p, q).sum(dim=1, keepdim=True).clamp_min(LEAST)
            of_all = (1 - share) * p.sum(dim=1, keepdim=True) + share * below.sum(dim=1, keepdim=True) / alpha
            of_likely = (1 - share) * p + share * below / alpha
            error = logits.sub_(whole).exp_().mul_(of_all).scatter_add_(1, rows, -of_likely).div_(len(states))
            small_error = error.to(torch.bfloat16)
            for_states[part] = (small_error @ small_head).to(states.dtype)
            for_head += (small_error.T @ h).float()
        ctx.save_for_backward(for_states, for_head)
        return total / len(states)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        """The kept gradients, times that of the loss."""
        for_states, for_head = ctx.saved_tensors
        return for_states * grads[0], for_head * grads[0], None, None, None, None
