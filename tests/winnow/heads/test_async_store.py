"""Loading heads in threads that a store cannot take for ever."""

import asyncio
from pathlib import Path

import pytest
from scripted_store import ScriptedStore
from small_heads import FINGERPRINT, WIDTH
from tenacious import happens

from winnow.errors import NotFoundError, UnavailableError
from winnow.heads.async_store import AsyncHeadStore

AT_ONCE = 4
"""Threads that load."""


async def test_a_store_that_hangs_takes_no_thread_for_ever(tmp_path: Path) -> None:
    store = ScriptedStore(tmp_path)
    store.add("intent")
    loader = AsyncHeadStore(store, FINGERPRINT, WIDTH, timeout=0.01)
    store.go_on.clear()
    try:
        looks = [loader.read_record("intent") for _ in range(2 * AT_ONCE)]
        found = await asyncio.gather(*looks, return_exceptions=True)
        assert {type(each) for each in found} == {UnavailableError}
        assert "did not answer within 0.01 seconds" in str(found[0])
    finally:
        store.go_on.set()
        loader.close()


async def test_after_a_store_hung_heads_are_loaded_again(tmp_path: Path) -> None:
    """All four threads were taken, and nothing was loaded until the process was started again."""
    store = ScriptedStore(tmp_path)
    store.add("intent")
    loader = AsyncHeadStore(store, FINGERPRINT, WIDTH, timeout=0.01)
    store.go_on.clear()
    for _ in range(AT_ONCE):
        with pytest.raises(UnavailableError):
            await loader.read_record("intent")
    asked = len(store.asked)
    looking = asyncio.create_task(loader.read_record("intent"))
    await happens(lambda: len(store.asked) > asked)
    store.go_on.set()
    await asyncio.gather(looking, return_exceptions=True)  # in time or not: a thread took it up
    loader.close()


async def test_an_error_in_time_is_raised_as_it_is(tmp_path: Path) -> None:
    loader = AsyncHeadStore(ScriptedStore(tmp_path), FINGERPRINT, WIDTH)
    with pytest.raises((NotFoundError, UnavailableError)):
        await loader.read_record("intent")
    loader.close()
