"""Ports that are taken are found out before anything is started."""

import errno
import socket
from collections.abc import Iterator

import pytest

from winnow.address import Address
from winnow.cli.local.ports import (
    consecutive_addresses,
    free_ports,
    require_free,
    reserve,
    with_fallback_port,
    with_free_port,
)
from winnow.errors import UnavailableError


@pytest.fixture
def taken() -> Iterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Address("127.0.0.1", listening.getsockname()[1])


def test_a_port_that_is_in_use_is_named(taken: Address) -> None:
    with pytest.raises(UnavailableError, match=f"{taken} is in use"):
        require_free((taken, ""))


def test_the_flag_that_chooses_another_port_is_named(taken: Address) -> None:
    with pytest.raises(
        UnavailableError, match=r"port with --listen, such as 127\.0\.0\.1:0 for any"
    ):
        require_free((taken, "--listen"))
    with pytest.raises(UnavailableError, match="choose another address with --listen"):
        require_free((Address("192.0.2.1", 80), "--listen"))


def test_an_address_that_is_named_twice_is_in_use() -> None:
    address = Address("127.0.0.1", free_ports(1)[0])
    require_free((address, "--listen"))
    with pytest.raises(
        UnavailableError, match=f"{address} .* twice, by --listen and --http-listen"
    ):
        require_free((address, "--listen"), (address, "--http-listen"))


def test_a_host_of_another_machine_is_named() -> None:
    with pytest.raises(UnavailableError, match=r"cannot listen on 192\.0\.2\.1:80: [\w ]+$"):
        require_free((Address("192.0.2.1", 80), ""))
    with pytest.raises(UnavailableError, match=r"cannot listen on 192\.0\.2\.1:0"):
        with_free_port(Address("192.0.2.1", 0))


def test_another_port_does_where_the_wanted_one_is_in_use(taken: Address) -> None:
    other = with_fallback_port(taken)
    assert (other.host, other.port != taken.port) == (taken.host, True)
    free = Address("127.0.0.1", free_ports(1)[0])
    assert with_fallback_port(free) == with_fallback_port(free, taken) == free
    for host in (free.host, "0.0.0.0", "::", "localhost"):
        assert with_fallback_port(free, Address(host, free.port)).port not in (0, free.port)


def test_no_port_becomes_a_free_one() -> None:
    address = with_free_port(Address("127.0.0.1", 0))
    assert address.port
    require_free((address, ""))
    assert with_free_port(address) == address


def test_a_free_port_is_still_free_when_a_child_listens_there() -> None:
    port = with_free_port(Address("127.0.0.1", 0)).port
    assert not reserve(port)
    with socket.create_server(("127.0.0.1", port)):
        pass
    assert not reserve(port)


def test_no_port_is_reserved_where_servers_could_not_listen_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> socket.socket:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    with monkeypatch.context() as other_system:
        other_system.setattr(socket, "create_server", refuse)
        (port,) = free_ports(1)
    with socket.socket() as server:  # without SO_REUSEADDR
        server.bind(("127.0.0.1", port))


def test_ports_of_the_nodes_follow_each_other() -> None:
    first = Address("::1", 9100)
    assert [str(each) for each in consecutive_addresses(first, 2)] == ["[::1]:9100", "[::1]:9101"]
    assert [each.port for each in consecutive_addresses(first.at(0), 2)] == [0, 0]
    assert [each.port for each in consecutive_addresses(first.at(65_535), 1)] == [65_535]
    with pytest.raises(UnavailableError, match=r"2 ports from \[::1\]:65535 on"):
        consecutive_addresses(first.at(65_535), 2)
