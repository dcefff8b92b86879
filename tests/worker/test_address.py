"""Where a worker may listen, and what stands in the way."""

from __future__ import annotations

import socket
import sys

import pytest

from specdec_cli.errors import UsageError
from specdec_cli.worker.address import Address, Reservation, check_exposure, resolve

FREE = Address("127.0.0.1", 0)


def listening(address: Address) -> socket.socket:
    """A socket as ggml opens it."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind((address.host, address.port))
    opened.listen(1)
    return opened


def test_a_name_becomes_its_ipv4_address() -> None:
    assert resolve("localhost", 7) == Address("127.0.0.1", 7)
    assert str(resolve("127.0.0.2", 7)) == "127.0.0.2:7"


@pytest.mark.parametrize(("host", "says"), [("::1", "IPv6"), ("[::1]", "IPv6"), ("a b", "no IPv4"), ("", "no IPv4")])
def test_a_host_without_an_ipv4_address_is_refused(host: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        resolve(host, 1)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9"])
def test_loopback_needs_no_leave(host: str) -> None:
    check_exposure(Address(host, 1), allowed=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "8.8.8.8", "169.254.0.1"])
def test_whatever_other_machines_can_reach_needs_leave_and_says_why(host: str) -> None:
    with pytest.raises(UsageError, match="no password and no encryption") as refused:
        check_exposure(Address(host, 50052), allowed=False)
    assert "ssh -N -L 50052:127.0.0.1:50052" in refused.value.hint
    assert "--expose" in refused.value.hint
    check_exposure(Address(host, 50052), allowed=True)


def test_port_0_becomes_one_that_ggml_can_listen_at() -> None:
    with Reservation(FREE) as reservation:
        assert reservation.address.port > 0
        listening(reservation.address).close()
        listening(reservation.address).close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets two sockets have one address")
def test_nobody_else_gets_the_address_between_two_processes_that_serve_there() -> None:
    with Reservation(FREE) as reservation, socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((reservation.address.host, reservation.address.port))


def test_an_address_that_is_in_use_is_refused() -> None:
    with (
        Reservation(FREE) as reservation,
        listening(reservation.address),
        pytest.raises(UsageError, match=f"{reservation.address} is in use"),
    ):
        Reservation(reservation.address)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="is not an address of this machine"):
        Reservation(Address("192.0.2.1", 0))
