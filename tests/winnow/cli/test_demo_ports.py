"""The ports of the demo, whose defaults may be in use."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from winnow.cli.local.demo import _default_address, _given_address, demo
from winnow.cli.local.ports import free_ports
from winnow.errors import UnavailableError
from winnow.settings.errors import SettingsError


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_any_free_port_does_where_nobody_chose_one_and_it_is_said(taken: str) -> None:
    said: list[str] = []
    found = _default_address("--listen", taken, "", said.append)
    assert found != taken
    assert said == [f"{taken} is taken: this demo listens on {found} instead (--listen changes it)"]


def test_the_usual_port_is_taken_without_a_word() -> None:
    said: list[str] = []
    usual = f"127.0.0.1:{free_ports(1)[0]}"
    assert _default_address("--listen", usual, "", said.append) == usual
    assert not said


def test_the_usual_port_is_not_used_where_the_other_flag_names_it() -> None:
    said: list[str] = []
    usual = f"127.0.0.1:{free_ports(1)[0]}"
    found = _default_address("--http-listen", usual, usual, said.append)
    assert found != usual
    assert f"listens on {found} instead (--http-listen changes it)" in said[0]


def test_a_port_that_was_chosen_is_not_replaced(taken: str) -> None:
    with pytest.raises(UnavailableError, match="choose another port with --listen"):
        _given_address("--listen", taken)
    with pytest.raises(SettingsError, match="--listen: '8080' has no port"):
        _given_address("--listen", "8080")


def test_one_port_for_two_protocols_is_refused_before_the_build(tmp_path: Path) -> None:
    address, index = f"127.0.0.1:{free_ports(1)[0]}", tmp_path / "index"
    with pytest.raises(
        UnavailableError, match=f"{address} is used twice, by --listen and --http-listen"
    ):
        demo(index=index, shards=1, listen=address, http_listen=address, once=True)
    assert not index.exists()
