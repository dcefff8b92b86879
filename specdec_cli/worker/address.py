"""Where a worker listens: an address of this machine that nobody else has, and who could reach it there."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from specdec_cli.errors import UsageError

DANGER: Final = (
    "a worker has no password and no encryption: whoever reaches the port uses its devices, can crash it, "
    "and can read what others send"
)
TUNNEL: Final = "ssh -N -L {port}:127.0.0.1:{port} user@this-machine"
REASONS: Final = {
    errno.EADDRINUSE: ("is in use", "does another worker run? --port N is another one, --port 0 any that is free"),
    errno.EADDRNOTAVAIL: ("is not an address of this machine", "give one of its own, or leave out --host"),
    errno.EACCES: ("is not for you to serve at", "ports below 1024 need the rights of an administrator"),
}


@dataclass(frozen=True, slots=True)
class Address:
    """An IPv4 address and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_exposed(self) -> bool:
        """Whether other machines may reach it."""
        return not ipaddress.ip_address(self.host).is_loopback


def resolve(host: str, port: int) -> Address:
    """The IPv4 address of the name or address `host`, the only kind that ggml's RPC listens at.

    Raises:
        UsageError: it has none.
    """
    if ":" in host:
        raise UsageError(
            f"--host {host} is an IPv6 address, which ggml's RPC cannot serve at", hint="give a name or IPv4"
        )
    try:
        found = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no name of a machine"
        raise UsageError(f"--host {host} has no IPv4 address: {reason}", hint="leave it out for 127.0.0.1") from error
    return Address(str(found[0][4][0]), port)


def check_exposure(address: Address, *, allowed: bool) -> None:
    """Refuse an address that other machines may reach, unless that is `allowed`.

    Raises:
        UsageError: it is one.
    """
    if address.is_exposed and not allowed:
        tunnel = TUNNEL.format(port=address.port or "PORT")
        raise UsageError(
            f"at {address.host} other machines may reach this worker, and {DANGER}",
            hint=f"leave out --host and let others come in by {tunnel}; or add --expose",
        )


class Reservation:
    """An address that was free, and on Linux stays ours, until it is left, between two processes that serve there.

    Port 0 becomes one that is free.

    Raises:
        UsageError: it is not free, or nothing can be served there.
    """

    def __init__(self, address: Address) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as ggml's, which it must not stop
            self._socket.bind((address.host, address.port))
        except OSError as error:
            self._socket.close()
            otherwise = error.strerror or os.strerror(error.errno or 0)
            reason, hint = REASONS.get(error.errno or 0, (f"cannot be served at: {otherwise}", ""))
            raise UsageError(f"{address} {reason}", hint=hint) from error
        self.address = Address(address.host, self._socket.getsockname()[1])
        if sys.platform != "linux":  # elsewhere a socket that does not even listen keeps ggml's from it
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._socket.close()
