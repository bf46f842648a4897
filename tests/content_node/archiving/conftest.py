"""A shard that can be archived."""

from pathlib import Path

import pytest
from archived_shard import Archiving, archiving_shard


@pytest.fixture
async def archiving(tmp_path: Path) -> Archiving:
    return await archiving_shard(tmp_path)
