"""Finding the socket that C listens at, and what the sockets of its clients inherit from it."""

from __future__ import annotations

import socket

import pytest

from specdec_cli.llama.keepalive import can_look
from specdec_cli.worker.listening import IDLE, find_listening, watch_clients

pytestmark = pytest.mark.skipif(not can_look(), reason="this system does not show a process its open files")


def test_the_socket_that_listens_is_found_among_all_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)):
        address = server.getsockname()
        with socket.create_connection(address), server.accept()[0]:
            found = find_listening(*address)
            assert found is not None
            with found:
                assert found.getsockname() == address
                assert found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


def test_one_that_does_not_listen_yet_is_not_found() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert find_listening(*bound.getsockname()) is None


def test_a_client_that_comes_is_asked_for_signs_of_life() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = find_listening(*server.getsockname())
        assert found is not None
        with found:
            watch_clients(found)
        with socket.create_connection(server.getsockname()), server.accept()[0] as accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_KEEPIDLE"):
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == IDLE
