"""`HOST:PORT` as users write it."""

from __future__ import annotations

import pytest

from specdec_cli.endpoints import DEFAULT_PORT, to_endpoints
from specdec_cli.errors import UsageError


@pytest.mark.parametrize(
    ("given", "endpoints"),
    [
        ("gpu-box:50053", ("gpu-box:50053",)),
        ("10.0.0.2", (f"10.0.0.2:{DEFAULT_PORT}",)),
        (" a:1 , b_2.local:65535 ", ("a:1", "b_2.local:65535")),
        ("a:00080", ("a:80",)),
        ("grüße:1", ("grüße:1",)),
        ("none", ()),
        (" none ", ()),
    ],
)
def test_what_a_user_writes_becomes_hosts_with_ports(given: str, endpoints: tuple[str, ...]) -> None:
    assert to_endpoints(given) == endpoints


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "names no host"),
        (":50052", "names no host"),
        ("a:1,", "names no host"),
        ("a b:1", "names no host"),
        ("a\x00:1", "names no host"),
        ("http://a:1", "names no host"),
        ("user@a:1", "names no host"),
        ("a:b:1", "IPv6"),
        ("::1", "IPv6"),
        ("[::1]:50052", "IPv6"),
        ("fe80::1:50052", "IPv6"),
        ("a:", 'has the port ""'),
        ("a:x", 'has the port "x"'),
        ("a:0", "not in 1..65535"),
        ("a:65536", "not in 1..65535"),
        ("a:-1", "not in 1..65535"),
        ("a:٣", "not in 1..65535"),
        ("a:" + "9" * 5000, "not in 1..65535"),
        ("a:1,a:1", "names a:1 twice"),
        (f"a,a:{DEFAULT_PORT}", f"names a:{DEFAULT_PORT} twice"),
    ],
)
def test_what_is_no_endpoint_is_refused_with_the_option_and_the_reason(given: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        to_endpoints(given, named="pair x: rpc")
    assert caught.value.message.startswith("pair x: rpc ")
    assert words in caught.value.message
