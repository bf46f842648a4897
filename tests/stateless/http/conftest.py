"""A front that serves HTTP in this process, and a client of it."""

from collections.abc import AsyncIterator

import httpx
import pytest
from http_front import HttpFront


@pytest.fixture
def front() -> HttpFront:
    return HttpFront()


@pytest.fixture
async def client(front: HttpFront) -> AsyncIterator[httpx.AsyncClient]:
    async with front.serving() as client:
        yield client
