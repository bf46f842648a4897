"""However bad a shard is, it is refused as one: nothing else comes out of opening it.

Checksums are made again for what was altered, so that what is tested is what lies behind them.
"""

import contextlib
import copy
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from altered_json import mutations
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from winnow.bundle import Bundle, load_bundle, read_manifest
from winnow.bundle.manifest import FILE, Manifest
from winnow.content_node.identity import shard_info
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.manifest import (
    FORMAT,
    SHARD_FILE,
    IndexManifest,
    ShardManifest,
    read_index_manifest,
)
from winnow.content_node.shard.retrieving import retrieve
from winnow.convert.shard import info_to_message
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import INDEX_FILE
from winnow.errors import ArtefactError, IdentityError
from winnow.files.checksummed_json import to_checksummed_json
from winnow.packaged import default_bundle

GOLDEN = Path(__file__).parent.parent.parent / "golden"
MANIFESTS = {
    number: json.loads((GOLDEN / f"shard-format-{number}" / SHARD_FILE).read_text())
    for number in range(1, FORMAT + 1)
}
INDEX = IndexManifest(
    format=FORMAT,
    index_id="golden",
    shards=1,
    passages=3,
    dimension=8,
    bundle_name="golden",
    encoding_fingerprint="golden",
    source="",
    bad_rows=0,
    truncated_passages=0,
    manifests=("",),
).model_dump(mode="json")
BUNDLE = json.loads((default_bundle() / FILE).read_text())
QUESTION = EncodedQuestion(
    text="", token_ids=(1, 9), vector=np.eye(8, dtype=np.float32)[1], bundle_fingerprint=""
)
anything: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([
        None, True, False, 0, -1, 1, 2, 3, 4, 16, 2**31, 2**32, 2**53, 2**63, 2**64, 10**40, 1.5,
        3.0, -0.0, 1e308, float("nan"), float("inf"), "", "3", ".", "..", "/", "a/b", "\0", "\ud800",
        "é", "x" * 5_000, "passages.sqlite", "graph.hnsw", "tokens.npy", "ends.npy", "l2", "cosine",
        "frequencies.npy", "manifest.json", "0" * 64, "0" * 64 + "\n", [], [[]], {}, {"": {}},
        {"sha256": "0" * 64, "bytes": 0},
    ]),
    st.integers(),
    st.text(max_size=8),
    st.dictionaries(st.text(max_size=3), st.none() | st.integers(), max_size=2),
)  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


def write(path: Path, content: dict[str, Any], vouches: bool) -> None:
    text = to_checksummed_json(content) if vouches else json.dumps(content)
    path.write_bytes(text.encode(errors="surrogatepass"))


def tried(directory: Path, exact_up_to: int) -> None:
    """Opens the shard and asks it: a shard that opens answers."""
    try:
        shard = open_shard(directory, 64, exact_up_to=exact_up_to)
        view = view_of(shard)
        info_to_message(shard_info(view, bundle_of(shard.manifest)))
    except (ArtefactError, IdentityError):
        return
    for depth in (
        RetrievalDepth(passages=3, candidates=3),
        RetrievalDepth(passages=3, candidates=3, by_words=3),
        RetrievalDepth(passages=3, candidates=0, by_words=3),
    ):
        found = retrieve(view, QUESTION, depth, 0.1)
        assert [hit.passage_id for hit in found.hits][:1] == [
            "a" if depth.is_by_words_only else "b"
        ]
        assert [view.load(hit.row) for hit in found.hits]


def bundle_of(manifest: ShardManifest) -> Bundle:
    """One that fits the shard but for its dimension."""
    own = Manifest.model_validate(BUNDLE)

    class Fitting(Manifest):
        @property
        def encoding_fingerprint(self) -> str:
            return manifest.encoding_fingerprint

        @property
        def fingerprint(self) -> str:
            return ""

    encoder = own.encoder.model_copy(update={"dimension": 8})
    return Bundle(Path(), Fitting.model_validate({**own.model_dump(), "encoder": encoder}))


many = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@many
@given(st.data(), st.sampled_from([1, 2, 3]), st.booleans(), st.sampled_from([0, 3]))
def test_any_manifest_gives_a_shard_that_answers_or_a_refusal(
    directory: Path, data: st.DataObject, number: int, vouches: bool, exact_up_to: int
) -> None:
    place = directory / f"{number}"
    shutil.copytree(GOLDEN / f"shard-format-{number}", place, dirs_exist_ok=True)
    content = data.draw(mutations(MANIFESTS[number], anything))
    write(place / SHARD_FILE, content, vouches and number > 1)
    tried(place, exact_up_to)


@many
@given(st.data(), st.sampled_from(sorted(set(MANIFESTS[FORMAT]["files"]) - {"graph.hnsw"})))
def test_any_content_of_a_file_gives_a_refusal_and_no_other_error(
    directory: Path, data: st.DataObject, name: str
) -> None:
    """With a checksum that fits: of another version, or of a mistake in a builder."""
    place = directory / "files"
    shutil.copytree(GOLDEN / f"shard-format-{FORMAT}", place, dirs_exist_ok=True)
    content = bytearray((place / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content) - 1))
        put = data.draw(st.binary(max_size=8))
        content[start : start + data.draw(st.sampled_from([0, len(put), len(put), 1_000]))] = put
        content = content or bytearray(1)
    (place / name).write_bytes(content)
    manifest = copy.deepcopy(MANIFESTS[FORMAT])
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    manifest["files"][name] = entry
    write(place / SHARD_FILE, manifest, vouches=True)
    with contextlib.suppress(ArtefactError):
        open_shard(place, 64, exact_up_to=data.draw(st.sampled_from([0, 3])))


@many
@given(mutations(INDEX, anything), st.booleans())
def test_any_index_manifest_is_read_or_refused(
    directory: Path, content: dict[str, Any], vouches: bool
) -> None:
    write(directory / INDEX_FILE, content, vouches)
    with contextlib.suppress(ArtefactError):
        assert read_index_manifest(directory).shards > 0


@many
@given(mutations(BUNDLE, anything), st.booleans())
@example({**BUNDLE, "score": {**BUNDLE["score"], "span": float("nan")}}, True)
@example({**BUNDLE, "files": {**BUNDLE["files"], "\0": {"sha256": "", "bytes": 1}}}, True)
def test_any_bundle_manifest_is_read_or_refused(
    directory: Path, content: dict[str, Any], vouches: bool
) -> None:
    """Its models are not there: what is read of them is refused, too."""
    write(directory / FILE, content, vouches)
    with pytest.raises(ArtefactError):
        load_bundle(directory)
    try:
        found = read_manifest(directory)
    except ArtefactError:
        return
    assert len(found.fingerprint) == len(found.encoding_fingerprint) == 16
