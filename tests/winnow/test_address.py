"""Addresses to listen on, as people write them."""

import pytest

from winnow.address import Address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("localhost:0", "localhost", 0),
        ("0.0.0.0:65535", "0.0.0.0", 65535),
        ("[::1]:8080", "::1", 8080),
        ("[::]:80", "::", 80),
        ("node-0.nodes.svc:9000", "node-0.nodes.svc", 9000),
    ],
)
def test_an_address_is_read_and_written_back(text: str, host: str, port: int) -> None:
    address = Address.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no port"),
        ("9100", "has no port"),
        ("127.0.0.1", "has no port"),
        ("[::1]", "has no port"),
        (":8080", "has no host"),
        ("127.0.0.1:", "port '' is not a number from 0 to 65535"),
        ("127.0.0.1:99999", "port '99999'"),
        ("127.0.0.1:-1", "port '-1'"),
        ("127.0.0.1: 80", "port ' 80'"),
        ("127.0.0.1:٣", "port '٣'"),
        ("127.0.0.1:http", "port 'http'"),
        ("127.0.0.256:80", "is not an IP address"),
        ("127.1:80", "is not an IP address"),
        ("[nodes]:80", "is not an IP address"),
        ("[]:80", "is not a host"),
        ("::1:80", "put an IPv6 address in brackets"),
        ("http://127.0.0.1:80", "is not a host"),
        ("unix:/tmp/socket:80", "is not a host"),
        ("*:80", "is not a host"),
        ("a b:80", "is not a host"),
    ],
)
def test_anything_else_is_refused_and_says_what_is_expected(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT, such as") as caught:
        Address.parse(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("listening", "reached"),
    [
        ("0.0.0.0:80", "127.0.0.1:80"),
        ("[::]:80", "[::1]:80"),
        ("127.0.0.2:80", "127.0.0.2:80"),
    ],
)
def test_a_server_on_all_networks_is_reached_on_the_loopback(listening: str, reached: str) -> None:
    assert str(Address.parse(listening).reachable) == reached
