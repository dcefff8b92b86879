"""What the layers of a model weigh by its metadata, against what llama.cpp takes for them on a device of a worker."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specdec_cli.errors import ModelError
from specdec_cli.llama.description import cache_bytes, read_description, state_bytes
from specdec_cli.llama.layer_sizes import LayerSizes, layer_bytes, read_layer_sizes
from tests.toy_gguf import WIDTH, Toy, attention_toy
from tests.toy_kinds import KINDS, kind_toy

MEBIBYTE = 2**20
ROUNDED = 0.005 * MEBIBYTE
"""llama.cpp logs hundredths of a mebibyte."""
ROW = 4 * WIDTH
"""Bytes of a row of an F32 matrix."""
LOAD = """
import os, socket, sys, threading, time
from pathlib import Path
from specdec_cli.llama.devices import describe, devices
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import show_log
from specdec_cli.llama.placement import Placement
from specdec_cli.llama.rpc_library import lent_devices, start_server
from specdec_cli.llama.weights import load_weights

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = free.getsockname()
endpoint = f"127.0.0.1:{address[1]}"
serving = (endpoint, None, 1, [devices()[0].pointer])
threading.Thread(target=start_server, args=serving, daemon=True).start()
while socket.socket().connect_ex(address):
    time.sleep(0.01)
device = describe(lent_devices(endpoint)[0], endpoint)
show_log(lambda line: print(line, end=""))
for path, layers in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    placement = Placement((device,), (layers,), 3)
    load_weights(Path(path), "target", placement=placement, interrupt=Interrupt(), on_progress=id).close()
sys.stdout.flush()
os._exit(0)
"""
"""Loads models, each with so many of its layers on a worker that this process is, too; it prints llama.cpp's log."""


def toy(kind: str) -> Toy:
    return attention_toy() if kind == "attention" else kind_toy(kind)


def tied(model: Toy) -> Toy:
    """The same with its embeddings as its output."""
    return replace(model, tensors={name: each for name, each in model.tensors.items() if name != "output.weight"})


def sizes_of(model: Toy, folder: Path) -> LayerSizes:
    return read_layer_sizes(model.write(folder / "x.gguf"), "target")


def test_layers_weigh_what_llama_cpp_takes_for_them_on_a_worker(tmp_path: Path) -> None:
    models = [attention_toy(), tied(attention_toy()), kind_toy("jamba")]
    paths = [model.write(tmp_path / f"{index}.gguf") for index, model in enumerate(models)]
    cases = [(path, layers) for path in paths for layers in (1, 2, 3)]
    arguments = [str(each) for case in cases for each in case]
    done = subprocess.run([sys.executable, "-c", LOAD, *arguments], capture_output=True, text=True, check=True)
    taken = [float(size) * MEBIBYTE for size in re.findall(r"RPC0.* model buffer size = +([\d.]+) MiB", done.stdout)]
    read = {path: read_layer_sizes(path, "target") for path in paths}
    expected = [sum([*read[path].layers, read[path].output][-layers:]) for path, layers in cases]
    assert taken == pytest.approx(expected, abs=ROUNDED)


def test_embeddings_stay_out_unless_they_are_the_output_too(tmp_path: Path) -> None:
    model = attention_toy()
    rows = len(model.tokens)
    assert sizes_of(model, tmp_path).output == ROW * rows + ROW
    assert sizes_of(tied(model), tmp_path).output == ROW * rows + ROW
    more = {f"{name}.weight": model.tensors["token_embd.weight"] for name in ("per_layer_token_embd", "token_types")}
    extended = replace(model, tensors={**model.tensors, **more})
    assert sizes_of(extended, tmp_path) == sizes_of(model, tmp_path)


def test_a_layer_weighs_what_its_tensors_do(tmp_path: Path) -> None:
    model = attention_toy()
    bigger = {
        name: np.repeat(each, 2, axis=0) if name == "blk.1.ffn_up.weight" else each
        for name, each in model.tensors.items()
    }
    first, second = sizes_of(replace(model, tensors=bigger), tmp_path).layers
    assert first == sum(each.nbytes for name, each in model.tensors.items() if name.startswith("blk.0."))
    assert second - first == model.tensors["blk.1.ffn_up.weight"].nbytes


@pytest.mark.parametrize("kind", ["attention", *KINDS])
def test_what_the_layers_keep_is_what_the_model_does(tmp_path: Path, kind: str) -> None:
    sizes, shape = sizes_of(toy(kind), tmp_path), read_description(tmp_path / "x.gguf", "target").shape
    each = layer_bytes(sizes, 4000, keys="q8_0", values="f16", states=5)
    cache = cache_bytes(shape, 4000, keys="q8_0", values="f16")
    assert sum(each) == sum(sizes.layers) + sizes.output + cache + state_bytes(shape, 5)
    assert each[-1] == sizes.output


def test_only_layers_with_attention_pay_for_a_longer_context(tmp_path: Path) -> None:
    sizes = sizes_of(kind_toy("jamba"), tmp_path)
    short, long = (layer_bytes(sizes, size, keys="f16", values="f16", states=1) for size in (256, 512))
    more = [longer - shorter for shorter, longer in zip(short, long, strict=True)]
    assert [growth > 0 for growth in more] == [bool(shape.keys) for shape in sizes.shapes] + [False]
    assert {bool(shape.keys) for shape in sizes.shapes} == {True, False}


def test_later_parts_count_and_are_checked(tmp_path: Path) -> None:
    model = attention_toy()
    parts = [
        replace(model, tensors={name: each for name, each in model.tensors.items() if (".1." in name) == late})
        for late in (False, True)
    ]
    first, second = (part.write(tmp_path / f"{index}.gguf") for index, part in enumerate(parts))
    assert read_layer_sizes(first, "target", [second]) == sizes_of(model, tmp_path)
    second.write_bytes(second.read_bytes()[:-1000])
    with pytest.raises(ModelError, match=r"target .*1\.gguf is cut short"):
        read_layer_sizes(first, "target", [second])


@pytest.mark.parametrize("layers", [513, 2**32 - 1])
def test_more_layers_than_llama_cpp_takes_are_refused_and_not_counted_out(tmp_path: Path, layers: int) -> None:
    with pytest.raises(ModelError, match=f"has {layers} layers: llama.cpp takes 0..512"):
        sizes_of(attention_toy().having({"llama.block_count": layers}), tmp_path)
