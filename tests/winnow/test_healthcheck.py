"""What a container asks to tell whether its node serves."""

import asyncio
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from listening import new_server
from tenacious import LONG

SCRIPT = Path(__file__).parent.parent.parent / "deploy" / "healthcheck.py"
SERVICE = "winnow.v1.AnswerService"


@pytest.fixture
def check() -> Callable[[], int]:
    loaded: Any = runpy.run_path(str(SCRIPT))["main"]
    loaded.__globals__["_SECONDS"] = LONG  # a node of a busy machine replies late
    main: Callable[[], int] = loaded
    return main


@pytest.mark.parametrize("host", ["127.0.0.2", "0.0.0.0"])
async def test_the_address_that_the_node_listens_on_is_asked(
    host: str, check: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = new_server(SERVICE)
    port = await server.start(f"{host}:0")
    monkeypatch.setenv("WINNOW_FRONT_LISTEN", f"{host}:{port}")
    assert await asyncio.to_thread(check) == 1
    await server.set_serving(True)
    assert await asyncio.to_thread(check) == 0
    await server.drain(0)


def test_a_node_without_an_address_is_a_mistake(
    check: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINNOW_FRONT_LISTEN", raising=False)
    monkeypatch.delenv("WINNOW_NODE_LISTEN", raising=False)
    assert check() == 1
