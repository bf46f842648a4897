"""Values that several indexes share."""

from contextlib import AsyncExitStack

import pytest

from winnow.stateless.composing.shared_values import SharedValues


async def test_a_shared_value_is_opened_by_its_first_user_and_closed_after_its_last() -> None:
    events: list[str] = []

    async def opened(stack: AsyncExitStack) -> str:
        events.append("opened")
        stack.callback(events.append, "closed")
        return "encoder"

    shared, first, second = SharedValues[str, str](), AsyncExitStack(), AsyncExitStack()
    shared.keep("default", "kept")
    assert await shared.use("a", opened, first) == "encoder"
    assert await shared.use("a", opened, second) == "encoder"
    assert await shared.use("default", opened, second) == "kept"
    await first.aclose()
    assert events == ["opened"]
    await second.aclose()
    assert events == ["opened", "closed"]
    assert shared.all == ["kept"]
    await shared.use("a", opened, first)
    assert events == ["opened", "closed", "opened"]


async def test_a_value_that_cannot_be_opened_is_closed_and_tried_again() -> None:
    closed: list[str] = []

    async def failing(stack: AsyncExitStack) -> str:
        stack.callback(closed.append, "closed")
        raise OSError("no file")

    async def opened(_: AsyncExitStack) -> str:
        return "encoder"

    shared = SharedValues[str, str]()
    async with AsyncExitStack() as user:
        with pytest.raises(OSError, match="no file"):
            await shared.use("a", failing, user)
        assert closed == ["closed"]
        assert await shared.use("a", opened, user) == "encoder"
