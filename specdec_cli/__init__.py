"""specdec: lossless speculative decoding of GGUF models, on the command line and for programs: `open_pair`.

What programs use is loaded when it is first asked for: the command line must not wait for it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specdec_cli.library.laws import Position as Position
    from specdec_cli.library.opened import Answer as Answer
    from specdec_cli.library.opened import OpenPair as OpenPair
    from specdec_cli.library.opening import open_pair as open_pair
else:
    _ROOMS = {"open_pair": "opening", "OpenPair": "opened", "Answer": "opened", "Position": "laws"}

    def __getattr__(name: str) -> object:
        """One of the names that programs use."""
        if name not in _ROOMS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"specdec_cli.library.{_ROOMS[name]}"), name)


__all__ = ["Answer", "OpenPair", "Position", "open_pair"]
