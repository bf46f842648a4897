"""Nodes of one index that follow an assignment."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from assigned_nodes import Nodes

from winnow.bundle import Bundle


@pytest.fixture
async def nodes(tmp_path: Path, indexes: dict[int, Path], bundle: Bundle) -> AsyncIterator[Nodes]:
    async with AsyncExitStack() as stack:
        yield Nodes(tmp_path, indexes[3], bundle, stack)
