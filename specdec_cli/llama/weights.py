"""A model's weights, loaded once and released once."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specdec_cli.errors import ModelError
from specdec_cli.llama.adapters import Adapter, load_adapter
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import clear_log, during, llama, log_errors
from specdec_cli.llama.losses import explain_refusal
from specdec_cli.llama.placement import Placement, place

Progress = Callable[[float], None]


@dataclass(slots=True)
class Weights:
    """A loaded model. `model` and `vocab` are llama.cpp's pointers; after `close` they must not be used."""

    path: Path
    role: str
    model: Any
    vocab: Any
    placement: Placement
    adapters: list[Adapter] = field(default_factory=list)

    @property
    def vocabulary_size(self) -> int:
        """Ids that a row of logits has."""
        return int(llama().llama_vocab_n_tokens(self.vocab))

    @property
    def trained_context(self) -> int:
        """Tokens of context that the model was trained for."""
        return int(llama().llama_model_n_ctx_train(self.model))

    @property
    def description(self) -> str:
        """Architecture, size and quantisation, such as `qwen2 1.5B Q4_K - Medium`."""
        text = ctypes.create_string_buffer(256)
        llama().llama_model_desc(self.model, text, len(text))
        return text.value.decode("utf-8", "replace")

    @property
    def bytes(self) -> int:
        """Size of all tensors."""
        return int(llama().llama_model_size(self.model))

    @property
    def backend(self) -> str:
        """Where its layers are: `CPU`, names of devices, or both."""
        return self.placement.name

    @property
    def can_roll_back(self) -> bool:
        """Whether tokens can be taken out of its cache; recurrent and hybrid models go back to kept states instead."""
        return not (llama().llama_model_is_recurrent(self.model) or llama().llama_model_is_hybrid(self.model))

    def close(self) -> None:
        """Free the weights and their adapters; every context on them must be closed first."""
        if self.model is not None:
            llama().llama_model_free(self.model)
            self.model = self.vocab = None
            self.adapters = []


def load_weights(
    path: Path,
    role: str,
    *,
    placement: Placement,
    interrupt: Interrupt,
    on_progress: Progress,
    lora: Sequence[tuple[Path, float]] = (),
) -> Weights:
    """Load `path` as `role`; `on_progress` is called with the loaded share, 0..1.

    `lora` are adapters, each with its scale, that every context on the weights will apply.

    Raises:
        ModelError: llama.cpp refuses the file or an adapter, or it is not a decoder.
        KeyboardInterrupt: Ctrl-C while loading.
    """

    def report(share: float, _: Any) -> bool:
        try:
            on_progress(share)
        except KeyboardInterrupt:  # a second one, which C code could not pass on
            return False
        return not interrupt.raised

    progress = llama().llama_progress_callback(report)
    params = llama().llama_model_default_params()
    held = place(params, placement)
    params.progress_callback = progress
    clear_log()
    with during(f"loading {role} {path}"):
        model = llama().llama_model_load_from_file(os.fsencode(path), params)
    del held
    if interrupt.raised:
        if model:
            llama().llama_model_free(model)
        raise KeyboardInterrupt
    if not model:
        said = log_errors() or "llama.cpp does not say why"
        reason, hint = explain_refusal(said, "--verbose shows llama.cpp's whole log")
        raise ModelError(f"{role} {path} does not load: {reason}", hint=hint)
    weights = Weights(path, role, model, llama().llama_model_get_vocab(model), placement)
    try:
        _check_decoder(weights)
        weights.adapters += [load_adapter(model, each, scale, role) for each, scale in lora]
    except ModelError:
        weights.close()
        raise
    return weights


def _check_decoder(weights: Weights) -> None:
    """Refuse what cannot continue a text token by token."""
    kinds = {
        "an encoder": not llama().llama_model_has_decoder(weights.model),
        "an encoder-decoder": llama().llama_model_has_encoder(weights.model),
        "a diffusion model": llama().llama_model_is_diffusion(weights.model),
        "without a vocabulary": weights.vocabulary_size == 0,
    }
    for kind, refused in kinds.items():
        if refused:
            raise ModelError(
                f"{weights.role} {weights.path} is {kind}: it cannot continue a text",
                hint="give a decoder-only language model",
            )
