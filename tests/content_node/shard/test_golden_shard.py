"""A shard written by the first version of the format still loads and still answers.

Made once by `python tests/golden/make.py`; never made again for the same format.
"""

from pathlib import Path

import numpy as np
import pytest

from content_node.shard import open_shard
from winnow.domain.question import Depth, EncodedQuestion

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "shard-format-1"


@pytest.mark.parametrize("exact", [True, False])
def test_a_shard_of_format_1_still_loads(exact: bool) -> None:
    shard = open_shard(GOLDEN, ef=64, exact=exact)
    assert shard.manifest.format == 1
    assert shard.store.count() == 3
    assert shard.manifest.index_passages == 0
    assert len(shard.manifest.generation) == 16
    vector = np.zeros(8, np.float32)
    vector[1] = 1.0
    hits = shard.retrieve(EncodedQuestion("", (), vector, ""), Depth(2), 0.0).hits
    assert [(hit.row, hit.passage_id) for hit in hits] == [(1, "b"), (0, "a")]
    assert hits[0].distance == 0.0
    stored = shard.store.load([1])[0]
    assert stored.passage.text == "Zoë's café."
    assert stored.tokens.ids == (1, 2, 3)
    assert stored.tokens.offsets == ((0, 3), (3, 5), (6, 10))
    assert stored.title_ids == (9,)
