"""Tiny models of the kinds that treat the past in their own ways: recurrent, hybrid, with a sliding window.

F32 and random like `attention_toy`, with the same vocabulary; a few of llama.cpp's architectures for each kind:

    mamba    recurrent, keeps no states of its own
    jamba    attention and mamba layers, keeps no states of its own
    lfm2     attention and short convolutions; llama.cpp can keep its last few states (n_rs_seq)
    qwen35   attention and gated delta nets; llama.cpp can keep its last few states (n_rs_seq)
    gemma3   attention, every other layer over a window of `WINDOW` tokens
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tests.toy_gguf import FORWARD, HEADS, WIDTH, Matrix, Toy, dressed

RECURRENT: Final = ("mamba", "jamba", "lfm2", "qwen35")
KINDS: Final = (*RECURRENT, "gemma3")
WINDOW: Final = 16
HEAD, INNER, STATE, RANK, KERNEL = WIDTH // HEADS, 2 * WIDTH, 16, 4, 4

Shapes = Mapping[str, tuple[int, ...]]

ATTENTION: Final = {
    "attn_norm.weight": (WIDTH,),
    "attn_q.weight": (WIDTH, WIDTH),
    "attn_k.weight": (WIDTH, WIDTH),
    "attn_v.weight": (WIDTH, WIDTH),
    "attn_output.weight": (WIDTH, WIDTH),
}
HEAD_NORMS: Final = {"attn_q_norm.weight": (HEAD,), "attn_k_norm.weight": (HEAD,)}
FEED_FORWARD: Final = {
    "ffn_gate.weight": (FORWARD, WIDTH),
    "ffn_up.weight": (FORWARD, WIDTH),
    "ffn_down.weight": (WIDTH, FORWARD),
}
FEED_FORWARD_NORM: Final = {"ffn_norm.weight": (WIDTH,)}
MAMBA: Final = {
    "attn_norm.weight": (WIDTH,),
    "ssm_in.weight": (2 * INNER, WIDTH),
    "ssm_conv1d.weight": (INNER, KERNEL),
    "ssm_conv1d.bias": (INNER,),
    "ssm_x.weight": (RANK + 2 * STATE, INNER),
    "ssm_dt.weight": (INNER, RANK),
    "ssm_dt.bias": (INNER,),
    "ssm_a": (INNER, STATE),
    "ssm_d": (INNER,),
    "ssm_out.weight": (WIDTH, INNER),
}
JAMBA_NORMS: Final = {"ssm_dt_norm.weight": (RANK,), "ssm_b_norm.weight": (STATE,), "ssm_c_norm.weight": (STATE,)}
SHORT_CONVOLUTION: Final = {
    "attn_norm.weight": (WIDTH,),
    "shortconv.conv.weight": (WIDTH, KERNEL),
    "shortconv.in_proj.weight": (3 * WIDTH, WIDTH),
    "shortconv.out_proj.weight": (WIDTH, WIDTH),
}
DELTA_NET: Final = {
    "attn_norm.weight": (WIDTH,),
    "attn_qkv.weight": (6 * STATE, WIDTH),
    "attn_gate.weight": (2 * STATE, WIDTH),
    "ssm_conv1d.weight": (6 * STATE, KERNEL),
    "ssm_dt.bias": (2,),
    "ssm_a": (2,),
    "ssm_alpha.weight": (2, WIDTH),
    "ssm_beta.weight": (2, WIDTH),
    "ssm_norm.weight": (STATE,),
    "ssm_out.weight": (WIDTH, 2 * STATE),
}
GATED_ATTENTION: Final = {**ATTENTION, "attn_q.weight": (2 * WIDTH, WIDTH)}
POST_NORM: Final = {"post_attention_norm.weight": (WIDTH,)}
GEMMA_NORMS: Final = {**POST_NORM, "post_ffw_norm.weight": (WIDTH,)}

_DENSE = {**FEED_FORWARD_NORM, **FEED_FORWARD}
_MAMBA_SETTINGS = {"ssm.conv_kernel": KERNEL, "ssm.inner_size": INNER, "ssm.state_size": STATE}
LAYERS: Final[Mapping[str, tuple[Shapes, ...]]] = {
    "mamba": (MAMBA, MAMBA),
    "jamba": ({**MAMBA, **JAMBA_NORMS, **_DENSE}, {**ATTENTION, **_DENSE}),
    "lfm2": ({**SHORT_CONVOLUTION, **_DENSE}, {**ATTENTION, **HEAD_NORMS, **_DENSE}),
    "qwen35": (
        {**DELTA_NET, **POST_NORM, **FEED_FORWARD},
        {**GATED_ATTENTION, **HEAD_NORMS, **POST_NORM, **FEED_FORWARD},
    ),
    "gemma3": ({**ATTENTION, **HEAD_NORMS, **GEMMA_NORMS, **_DENSE},) * 2,
}
SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "mamba": {
        **_MAMBA_SETTINGS,
        "ssm.time_step_rank": RANK,
        "feed_forward_length": 0,
        "attention.head_count": 0,
        "attention.head_count_kv": 0,
    },
    "jamba": {**_MAMBA_SETTINGS, "ssm.time_step_rank": RANK, "attention.head_count_kv": [0, HEADS]},
    "lfm2": {"shortconv.l_cache": KERNEL, "attention.head_count_kv": [0, HEADS]},
    "qwen35": {
        "ssm.conv_kernel": KERNEL,
        "ssm.inner_size": 2 * STATE,
        "ssm.state_size": STATE,
        "ssm.time_step_rank": 2,
        "ssm.group_count": 2,
        "full_attention_interval": 2,
        "rope.dimension_sections": [2, 3, 3, 0],
    },
    "gemma3": {"attention.sliding_window": WINDOW, "attention.sliding_window_pattern": 2},
}


def kind_toy(kind: str, scale: float = 1.0, *, seed: int = 7) -> Toy:
    """Two layers of `kind`, one of `KINDS`. `scale` sharpens the logits, as in `attention_toy`."""
    generator = np.random.default_rng(seed)
    tensors = {
        f"blk.{index}.{name}": _tensor(name, shape, generator)
        for index, shapes in enumerate(LAYERS[kind])
        for name, shape in shapes.items()
    }
    if kind == "lfm2":
        return dressed(tensors, kind, SETTINGS[kind], scale=scale, seed=seed, final_norm="token_embd_norm.weight")
    return dressed(tensors, kind, SETTINGS[kind], scale=scale, seed=seed)


def _tensor(name: str, shape: tuple[int, ...], generator: np.random.Generator) -> Matrix:
    drawn = generator.standard_normal(shape)
    special: dict[str, Callable[[], Any]] = {
        "ssm_a": lambda: -0.05 - 0.2 * np.abs(drawn),  # decays so slowly that the first token still tells
        "ssm_conv1d.weight": lambda: drawn,
        "shortconv.conv.weight": lambda: drawn,
    }
    if name.endswith("norm.weight"):
        return np.ones(shape, np.float32)
    return np.asarray(special.get(name, lambda: 0.15 * drawn)(), np.float32)
