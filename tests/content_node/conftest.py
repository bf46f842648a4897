"""Nodes of one index that follow an assignment, and a shard with precomputed data."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from assigned_nodes import Nodes
from fake_split_reader import lower
from fake_token_vectors import write_token_vectors
from live_shards import Fed, built
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.content_node.states.writing import StatesWriter
from winnow.content_node.transfer import remote


@pytest.fixture
async def nodes(
    tmp_path: Path,
    indexes: dict[int, Path],
    bundle: Bundle,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Nodes]:
    # else a node that replies seems to be silent beside other work
    monkeypatch.setattr(remote, "_REPORT_SECONDS", LONG)
    async with AsyncExitStack() as stack:
        yield Nodes(tmp_path, indexes[3], bundle, stack)


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    """A shard of 30 passages with their states and token vectors."""
    texts = {f"built {n}": f"text number {n} " * 9 for n in range(30)}
    fed = Fed(built(tmp_path, texts), texts)
    StatesWriter(fed.shard, lower()).write(1, lambda *_: None, lambda _: None)
    write_token_vectors(fed.shard)
    return fed
