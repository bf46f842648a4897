"""A process that feeds a shard is killed 50 times: what was acknowledged is there, as a whole."""

import random
import shutil
from pathlib import Path

import pytest

from bench.kills import GOLDEN, Kills


@pytest.mark.timeout(300)
def test_what_was_acknowledged_survives_kills_and_no_call_is_there_in_part(tmp_path: Path) -> None:
    kills = Kills(Path(shutil.copytree(GOLDEN, tmp_path / "shard")), random.Random(1))
    kills.run(50)
    kills.check_served()
    assert kills.kills == 50
    assert len(kills.acknowledged) > 100
