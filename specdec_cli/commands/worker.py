"""`specdec worker`: lending this machine's devices to others."""

from pathlib import Path
from typing import Annotated, Final

from specdec_cli.commands import options
from specdec_cli.commands.option_kinds import option, whole
from specdec_cli.endpoints import DEFAULT_PORT, HIGHEST_PORT
from specdec_cli.limits import MOST_THREADS

WORKER: Final = "Worker"
LOOPBACK: Final = "127.0.0.1"

Host = Annotated[
    str, option("--host", panel=WORKER, metavar="HOST", help="The address to listen at, a name or IPv4. See --expose.")
]
Port = Annotated[
    int, whole("--port", low=0, high=HIGHEST_PORT, panel=WORKER, help="The port to listen at; 0: one that is free.")
]
Devices = Annotated[
    str | None,
    option(
        "--device",
        panel=WORKER,
        metavar="NAME[,NAME]",
        help="What to lend, as specdec doctor calls it. Default: every accelerator, or else the CPU.",
    ),
]
Threads = Annotated[
    int | None, whole("--threads", low=1, high=MOST_THREADS, panel=WORKER, help="Of the CPU. Default: all CPUs.")
]
Cache = Annotated[
    Path | None,
    option("--cache", panel=WORKER, metavar="DIR", help="Keep big tensors in DIR: who loads them again sends less."),
]
Expose = Annotated[
    bool, option("--expose", panel=WORKER, help="Let other machines connect. There is no password and no encryption.")
]


def worker(
    host: Host = LOOPBACK,
    port: Port = DEFAULT_PORT,
    device: Devices = None,
    threads: Threads = None,
    cache: Cache = None,
    expose: Expose = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> int:
    """Lend this machine's devices to a specdec elsewhere, or to anything else of llama.cpp, until Ctrl-C.

    It serves one client after another. Where stdout is no terminal, the address goes there once clients can come.

    [b]Examples[/b]

    specdec worker

    ssh -N -L 50052:127.0.0.1:50052 user@that-machine

    specdec generate --rpc 127.0.0.1:50052 -m big.gguf -d small.gguf [green]"Why is the sky blue?"[/]
    """
    from specdec_cli.terminal import Terminal
    from specdec_cli.worker.address import DANGER, Reservation, check_exposure, resolve
    from specdec_cli.worker.plan import Plan
    from specdec_cli.worker.supervising import supervise
    from specdec_cli.worker.tensor_cache import TensorCache

    names = options.to_names("--device", device) or ()
    address = resolve(host, port)
    check_exposure(address, allowed=expose)
    terminal = Terminal.of_process(quiet=quiet)
    with Reservation(address) as reservation:
        if address.is_exposed:
            terminal.notice(f"other machines may reach this worker: {DANGER}")
        kept = None if cache is None else TensorCache(cache)
        plan = Plan(
            host=reservation.address.host,
            port=reservation.address.port,
            devices=names,
            threads=threads,
            caches=kept is not None,
            verbose=verbose,
        )
        return supervise(plan, kept, terminal)
