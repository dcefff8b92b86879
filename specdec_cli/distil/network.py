"""The draft as PyTorch trains it, computing what llama.cpp will: RMS norms, rotary positions, SwiGLU.

Its vocabulary is compact: row i of the embeddings is the i-th of the ids that occur, and the last row stands for all
others. That row is a member of the softmax as often as there are others, so training itself keeps them out.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from specdec_cli.distil.shape import Shape


class Block(nn.Module):
    """Attention and feed-forward, each on the normed state and added to it."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        width = shape.width
        self.heads = shape.heads
        self.dropout = dropout
        self.attn_norm = nn.RMSNorm(width, shape.norm_epsilon)
        self.attn_q = nn.Linear(width, width, bias=False)
        self.attn_k = nn.Linear(width, width, bias=False)
        self.attn_v = nn.Linear(width, width, bias=False)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_norm = nn.RMSNorm(width, shape.norm_epsilon)
        self.ffn_gate = nn.Linear(width, shape.feed_forward, bias=False)
        self.ffn_up = nn.Linear(width, shape.feed_forward, bias=False)
        self.ffn_down = nn.Linear(shape.feed_forward, width, bias=False)

    def forward(self, state: Tensor, turns: Tensor) -> Tensor:
        """`state` [batch, n, width] and the rotary `turns` [n, width / heads / 2] to the next state."""
        normed = self.attn_norm(state)
        batch, length, width = state.shape
        q, k, v = (
            layer(normed).view(batch, length, self.heads, -1).transpose(1, 2)
            for layer in (self.attn_q, self.attn_k, self.attn_v)
        )
        mixed = functional.scaled_dot_product_attention(turned(q, turns), turned(k, turns), v, is_causal=True)
        mixed = self.attn_output(mixed.transpose(1, 2).reshape(batch, length, width))
        state = state + functional.dropout(mixed, self.dropout, self.training)
        normed = self.ffn_norm(state)
        fed = self.ffn_down(functional.silu(self.ffn_gate(normed)) * self.ffn_up(normed))
        return state + functional.dropout(fed, self.dropout, self.training)


class Network(nn.Module):
    """`rows` embeddings, the blocks, a norm; the head is the embeddings again."""

    def __init__(self, shape: Shape, rows: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.dropout = dropout
        self.token_embd = nn.Embedding(rows, shape.width)
        self.blk = nn.ModuleList(Block(shape, dropout) for _ in range(shape.layers))
        self.output_norm = nn.RMSNorm(shape.width, shape.norm_epsilon)
        for name, weight in self.named_parameters():
            if name.endswith(("attn_output.weight", "ffn_down.weight")):
                nn.init.normal_(weight, std=0.02 / (2 * shape.layers) ** 0.5)
            elif weight.ndim == 2:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Final states [batch, n, width] after each of the rows `tokens` [batch, n]."""
        turns = rotary_turns(self.shape, tokens.shape[1]).to(tokens.device)
        state = functional.dropout(self.token_embd(tokens), self.dropout, self.training)
        for block in self.blk:
            state = block(state, turns)
        normed: Tensor = self.output_norm(state)
        return normed


def rotary_turns(shape: Shape, length: int) -> Tensor:
    """Complex rotations [length, head width / 2] of the pairs of neighbours in a head.

    Source: Su et al. 2021, "RoFormer"; llama.cpp's `llama` kind turns neighbours, as the paper does.
    """
    half = shape.width // shape.heads // 2
    speeds = shape.rope_base ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), speeds)
    return torch.polar(torch.ones_like(angles), angles)


def turned(states: Tensor, turns: Tensor) -> Tensor:
    """`states` [..., n, head width] with each pair of neighbours rotated by its `turns`."""
    pairs = torch.view_as_complex(states.float().reshape(*states.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).to(states.dtype)
