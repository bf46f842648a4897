"""Shards of every version of the format still load and answer, and no byte of one goes unchecked.

Made once each by `python tests/golden/make.py`; never made again for the same format.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.manifest import FORMAT, GRAPHLESS_FORMAT, SHARD_FILE
from winnow.content_node.shard.nearest import ExactIndex, GraphIndex
from winnow.content_node.shard.retrieving import retrieve
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.errors import ArtefactError

GOLDEN = Path(__file__).parent.parent.parent / "golden"
NEWEST = GOLDEN / f"shard-format-{FORMAT}"
FILES = {path.name: path.read_bytes() for path in sorted(NEWEST.iterdir())}


@pytest.mark.graph
@pytest.mark.parametrize("exact_up_to", [0, 3], ids=["by graph", "exactly"])
@pytest.mark.parametrize("number", range(1, GRAPHLESS_FORMAT + 1))
def test_a_shard_of_every_format_still_loads(number: int, exact_up_to: int) -> None:
    shard = open_shard(GOLDEN / f"shard-format-{number}", ef=64, exact_up_to=exact_up_to)
    by_graph = not exact_up_to and number != GRAPHLESS_FORMAT
    assert isinstance(shard.index, GraphIndex if by_graph else ExactIndex)
    assert shard.manifest.format == number
    assert shard.manifest.has_checksum == (number > 1)
    assert len(shard.store.row_numbers()) == 3
    assert shard.manifest.index_passages == (0 if number == 1 else 3)
    assert (shard.manifest.words is None) == (number == 1)
    assert shard.manifest.rows == 3
    assert len(shard.manifest.generation) == 16
    vector = np.zeros(8, np.float32)
    vector[1] = 1.0
    hits = retrieve(
        view_of(shard),
        EncodedQuestion(text="", token_ids=(), vector=vector, bundle_fingerprint=""),
        RetrievalDepth(passages=3),
        0.0,
    ).hits
    assert [(hit.row, hit.passage_id) for hit in hits] == [(1, "b"), (0, "a"), (2, "c")]
    assert hits[0].distance == 0.0
    stored = shard.store.load([1])[0]
    assert stored.passage.text == "Zoë's café."
    assert stored.tokens.ids == (1, 2, 3)
    assert stored.tokens.offsets == ((0, 3), (3, 5), (6, 10))
    assert stored.title_ids == (9,)
    assert shard.field_names == (("tags", "year") if number > 2 else ())
    assert shard.matching_rows("year = 2010 or not exists year").tolist() == [
        True,
        True,
        number < 3,
    ]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(NEWEST, tmp_path / "shard"))


def replaced(path: Path, place: int, byte: int) -> None:
    """Asserts that a shard with another byte there is refused by name; puts it back."""
    put(path, place, byte)
    with pytest.raises(ArtefactError, match=path.name):
        open_shard(path.parent, ef=64)
    put(path, place, FILES[path.name][place])


def put(path: Path, place: int, byte: int) -> None:
    with path.open("rb+") as file:
        file.seek(place)
        file.write(bytes([byte]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_altered_byte_of_any_file_is_refused_by_name(copy: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    place = data.draw(st.integers(0, len(FILES[name]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != FILES[name][place]))
    replaced(copy / name, place, byte)


def test_any_flipped_bit_of_the_manifest_is_refused_by_name(copy: Path) -> None:
    for place, byte in enumerate(FILES[SHARD_FILE]):
        replaced(copy / SHARD_FILE, place, byte ^ 1 << place % 8)


def test_a_manifest_does_not_pass_for_one_of_an_older_format(copy: Path) -> None:
    replaced(copy / SHARD_FILE, FILES[SHARD_FILE].index(b"%d" % FORMAT), ord("1"))


@pytest.mark.parametrize("exact_up_to", [0, 3], ids=["by graph", "exactly"])
@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ({"dimension": 7}, "vectors of 8 values, its manifest says 7"),
        ({"dimension": 4}, "vectors of 8 values, its manifest says 4"),
        ({"dimension": 10**12}, "damaged: dimension"),
        ({"dimension": 10**30}, "damaged: dimension"),
        ({"passages": 4}, "holds 3 passages, its manifest says 4"),
        ({"passages": 10**30}, "damaged: passages"),
        ({"index_passages": 10**30}, "damaged: index_passages"),
        ({"shards": 10**12}, "damaged: shards"),
        ({"shard": 1}, "there is no shard 1 of 1"),
        ({"store": "graph.hnsw"}, r"graph\.hnsw cannot be read"),
    ],
)
def test_a_changed_value_without_a_checksum_is_refused(
    tmp_path: Path, exact_up_to: int, altered: dict[str, object], said: str
) -> None:
    shard = Path(shutil.copytree(GOLDEN / "shard-format-1", tmp_path / "shard"))
    content = json.loads((shard / SHARD_FILE).read_text())
    (shard / SHARD_FILE).write_text(json.dumps({**content, **altered}))
    with pytest.raises(ArtefactError, match=said):
        open_shard(shard, ef=64, exact_up_to=exact_up_to)
