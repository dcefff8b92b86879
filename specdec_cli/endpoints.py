"""Where workers listen: `HOST:PORT`, as the user writes it."""

from __future__ import annotations

from typing import Final

from specdec_cli.errors import UsageError

DEFAULT_PORT: Final = 50052
"""llama.cpp's own rpc-server listens there too."""
HIGHEST_PORT: Final = 65535


def to_endpoints(given: str, named: str = "--rpc") -> tuple[str, ...]:
    """`HOST:PORT` each, from several by commas; none for `none`. A port that is not said is `DEFAULT_PORT`.

    Raises:
        UsageError: one is not of that form, or named twice.
    """
    if given.strip() == "none":
        return ()
    endpoints = tuple(_to_endpoint(part.strip(), named) for part in given.split(","))
    for each in endpoints:
        if endpoints.count(each) > 1:
            raise UsageError(f"{named} names {each} twice", hint="a worker serves one connection")
    return endpoints


def _to_endpoint(given: str, named: str) -> str:
    host, colon, port = given.rpartition(":") if ":" in given else (given, "", "")
    if "[" in host or (set(host) <= set("0123456789abcdefABCDEF:") and ":" in host):
        raise UsageError(f"{named} {given} is an IPv6 address, which ggml cannot reach", hint="give a name or IPv4")
    if not host or not all(each.isalnum() or each in "._-" for each in host):
        raise UsageError(f'{named} "{given}" names no host', hint="HOST:PORT, several by commas; or none")
    if not colon:
        return f"{host}:{DEFAULT_PORT}"
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= HIGHEST_PORT):
        raise UsageError(f'{named} {given} has the port "{port}", which is not in 1..{HIGHEST_PORT}')
    return f"{host}:{int(port)}"
