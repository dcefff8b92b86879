"""Clients as llama.cpp is one, in processes of their own: they load a model onto a worker and decode till they die.

`python -m tests.worker.client ENDPOINT MODEL MOMENT...` has a client for each MOMENT, one after another, and kills it
when it has said that: `loading`, `loaded`, or `decoding N` after its N-th token. It says `done` for each.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import IO, Any, Final

from specdec_cli.llama.library import llama
from specdec_cli.llama.rpc_library import lent_devices

PATIENCE: Final = 60.0
"""Seconds until a test that waits for the impossible fails."""
ROOT: Final = Path(__file__).parents[2]


@contextmanager
def clients(endpoint: str, model: Path, *moments: str) -> Iterator[IO[str]]:
    """What such a process says; left, it is gone. A client whose moment is `never` stays."""
    arguments = [sys.executable, "-m", "tests.worker.client", endpoint, str(model), *moments]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stdout is not None
        patience = Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        patience.start()
        try:
            yield process.stdout
        finally:
            patience.cancel()
            os.killpg(process.pid, signal.SIGKILL)


def wait_for(output: IO[str], line: str) -> None:
    """Read `output` up to `line`."""
    for each in output:
        if each.strip() == line:
            return
    raise AssertionError(f"they ended before they said {line}")


def main(endpoint: str, path: str, *moments: str) -> None:
    """Have all these clients."""
    llama()
    for moment in moments:
        reading, writing = os.pipe()
        client = os.fork()
        if not client:
            load_and_decode(endpoint, path, writing)
        os.close(writing)
        with os.fdopen(reading) as said:
            for line in said:
                say(sys.stdout.fileno(), line.strip())
                if line.strip() == moment:
                    os.kill(client, signal.SIGKILL)
                    break
        os.waitpid(client, 0)
        say(sys.stdout.fileno(), "done")


def load_and_decode(endpoint: str, path: str, output: int) -> None:
    """Be a client until it is killed."""
    devices = lent_devices(endpoint)
    held = (ctypes.c_void_p * (len(devices) + 1))(*devices, None)
    params = llama().llama_model_default_params()
    params.devices, params.n_gpu_layers = ctypes.addressof(held), -1
    say(output, "loading")
    model = llama().llama_model_load_from_file(os.fsencode(path), params)
    assert model
    say(output, "loaded")
    options = llama().llama_context_default_params()
    options.n_ctx = options.n_batch = 512
    options.n_threads = options.n_threads_batch = 1
    context = llama().llama_init_from_model(model, options)
    assert context
    memory, batch = llama().llama_get_memory(context), llama().llama_batch_init(1, 0, 1)
    for number in range(1 << 30):
        decode(context, batch, number % 256)
        say(output, f"decoding {number}")
        if number % 256 == 255:
            llama().llama_memory_clear(memory, True)


def decode(context: Any, batch: Any, position: int) -> None:
    """Evaluate one token, whatever it is."""
    batch.n_tokens, batch.token[0], batch.pos[0] = 1, 65 + position % 26, position
    batch.n_seq_id[0], batch.seq_id[0][0], batch.logits[0] = 1, 0, 1
    assert llama().llama_decode(context, batch) == 0
    llama().llama_synchronize(context)


def say(output: int, line: str) -> None:
    """Print at once."""
    os.write(output, f"{line}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
