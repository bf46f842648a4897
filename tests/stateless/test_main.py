"""A front put together."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

import stateless.__main__ as front
from stateless.cluster.discovery import Discovery
from stateless.settings import FrontSettings
from winnow.errors import WinnowError
from winnow.tools.local.ports import free_ports


class Dying(Discovery):
    """Ends by a mistake in the program."""

    async def run(self) -> None:
        raise ZeroDivisionError("a bug")


async def test_a_front_that_stops_looking_after_its_nodes_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It used to say SERVING for ever, with the nodes that it knew last."""
    monkeypatch.setattr(front, "Discovery", Dying)
    listen, node = free_ports(2)
    given = {"shards": [f"127.0.0.1:{node}"], "listen": f"127.0.0.1:{listen}"}
    settings = FrontSettings.load(given, None, {})
    with pytest.raises(WinnowError, match=r"nobody looks after content nodes .*a bug"):
        await asyncio.wait_for(front._run(settings, CollectorRegistry()), 60)
