"""What a target stands for."""

from collections.abc import Iterable

import pytest

from winnow.errors import UnavailableError
from winnow.resolving import DnsTarget, resolver
from winnow.settings.errors import SettingsError
from winnow.stateless.settings import FrontSettings


def found(*addresses: str) -> DnsTarget:
    async def look_up(host: str, port: int) -> Iterable[str]:
        assert (host, port) == ("nodes.example", 9000)
        return addresses

    return DnsTarget("dns:///nodes.example:9000", look_up)


async def test_an_address_stands_for_itself() -> None:
    assert await resolver("node-1:9000").addresses() == {"node-1:9000"}
    assert await resolver("[::1]:9000").addresses() == {"[::1]:9000"}


async def test_a_name_stands_for_all_its_addresses() -> None:
    assert await found("10.0.0.1", "10.0.0.2", "10.0.0.1").addresses() == {
        "10.0.0.1:9000",
        "10.0.0.2:9000",
    }
    assert await found("fd00::1").addresses() == {"[fd00::1]:9000"}


async def test_a_real_name_is_looked_up() -> None:
    assert "127.0.0.1:9000" in await resolver("dns:///localhost:9000").addresses()


async def test_a_name_without_addresses_is_an_error() -> None:
    with pytest.raises(UnavailableError, match="no address"):
        await found().addresses()


async def test_a_failed_lookup_is_an_error_that_names_the_target() -> None:
    async def look_up(host: str, port: int) -> Iterable[str]:
        raise OSError("name server is on fire")

    with pytest.raises(UnavailableError, match=r"dns:///n:1: name server is on fire"):
        await DnsTarget("dns:///n:1", look_up).addresses()


@pytest.mark.parametrize(
    "target", ["", "host", "host:", "host:0", "host:65536", ":9000", "dns:///host", "dns://h/x:1",
               "http://host:80", "::1:9000", "no host:9000"],
)  # fmt: skip
def test_what_is_no_target_is_refused_with_its_flag(target: str) -> None:
    with pytest.raises(ValueError, match=r"neither HOST:PORT nor|has port 0"):
        resolver(target)
    with pytest.raises(SettingsError, match=r"--shards \(or WINNOW_FRONT_SHARDS\)"):
        FrontSettings.load({"shards": [target]}, None, {})
