"""What an answer depends on has a name: a shard's generation, or a bundle's fingerprint."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from winnow.bundle import Bundle
from winnow.bundle.manifest import (
    BundleEncoder,
    ConfidenceEntry,
    Manifest,
    ScoreEntry,
    StoppingEntry,
)
from winnow.content_node.shard.manifest import (
    FORMAT,
    ShardManifest,
    WordsEntry,
    read_shard_manifest,
)
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import to_checksummed_json

GOLDEN = Path(__file__).parent.parent.parent / "golden" / f"shard-format-{FORMAT}"
SHARD = read_shard_manifest(GOLDEN)
OTHER = "f" * 64

NAMED: dict[str, dict[str, Any]] = {
    "passages": {"passages": 2},
    "rows": {"rows": 4},
    "sequence": {"sequence": 1},
    "log_id": {"log_id": "other"},
    "index_passages": {"index_passages": 4},
    "dimension": {"dimension": 4},
    "encoding_fingerprint": {"encoding_fingerprint": "other"},
    "words": {"words": None},
    "tenants": {"tenants": True},
    **{
        f"files: {name}": {
            "files": {**SHARD.files, name: entry.model_copy(update={"sha256": OTHER})}
        }
        for name, entry in SHARD.files.items()
    },
}
"""One change of everything that an answer depends on."""
APART = {"index_id", "shard", "shards"}
"""Told by a node beside its generation: replicas differ in none of them."""
HARMLESS = {
    "format",
    "m",
    "ef_construction",
    "bundle_name",
    "checksum",
    "store",
    "graph",
    "vectors",
    "space",
}
"""How the graph was built is in the graph; names of files are only names; there is one space."""
CERTAIN = ConfidenceEntry(relevance=1, span=2, distance=-1, bias=-3)


@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_another_figure_or_file_is_another_generation(change: dict[str, Any]) -> None:
    assert SHARD.model_copy(update=change).generation != SHARD.generation


def test_words_counted_otherwise_are_another_generation() -> None:
    assert SHARD.words is not None
    words = SHARD.words.model_copy(update={"index_tokens": 13})
    assert SHARD.model_copy(update={"words": words}).generation != SHARD.generation
    files = {"tokens", "ends", "frequencies", "postings", "starts", "counts"}
    assert set(WordsEntry.model_fields) == {*files, "index_tokens"}


def test_a_shard_of_an_older_format_keeps_its_name() -> None:
    """Replicas of it may be nodes of an older version."""
    named = {1: "a2fe3b80f0f7382b", 2: "659e6ee313a76846"}
    for number, name in named.items():
        assert read_shard_manifest(GOLDEN.with_name(f"shard-format-{number}")).generation == name


def test_every_field_of_a_shard_is_in_its_generation_or_has_a_reason_not_to_be() -> None:
    named = {name.partition(":")[0] for name in NAMED}
    assert named | APART | HARMLESS == set(ShardManifest.model_fields)


def test_names_of_files_and_how_it_was_built_are_the_same_generation() -> None:
    files = {("other" if n == SHARD.store else n): entry for n, entry in SHARD.files.items()}
    change = {"store": "other", "files": files, "m": 1, "ef_construction": 1, "bundle_name": ""}
    assert SHARD.model_copy(update=change).generation == SHARD.generation


@pytest.mark.parametrize(
    "add",
    [
        lambda content: content.update(extra=1),
        lambda content: content["words"].update(extra=1),
        lambda content: content["files"]["ends.npy"].update(extra=1),
        lambda content: content.update(passages="3"),
        lambda content: content.update(passages=3.0),
    ],
)
def test_unknown_fields_and_impossible_numbers_are_refused(
    add: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    content = json.loads((GOLDEN / "manifest.json").read_text())
    add(content)
    (tmp_path / "manifest.json").write_text(to_checksummed_json(content))
    with pytest.raises(ArtefactError, match=r"manifest\.json is damaged"):
        read_shard_manifest(tmp_path)


def changed(manifest: Manifest, part: str, values: dict[str, Any]) -> Manifest:
    entry = getattr(manifest, part).model_copy(update=values)
    return manifest.model_copy(update={part: entry})


def test_everything_in_a_bundle_that_changes_an_answer_is_in_its_fingerprint(
    bundle: Bundle,
) -> None:
    manifest = bundle.manifest
    rules = [
        tuple(rule.model_copy(update={name: getattr(rule, name) + 1}) for rule in manifest.stopping)
        for name in StoppingEntry.model_fields
    ]
    others = [
        *(manifest.model_copy(update={"stopping": stopping}) for stopping in ((), *rules)),
        changed(manifest, "retrieval", {"words": 1.0}),
        *(
            changed(manifest, "late_interaction", values)
            for values in ({"words": 9.0}, {"tokens": 9.0}, {"score": None}, {"stopping": ()})
        ),
        *(
            changed(manifest, "score", {name: 9.0})
            for name in set(ScoreEntry.model_fields)
            - {"confidence", "sentence_confidence", "min_confidence"}
        ),
        changed(manifest, "score", {"confidence": None}),
        changed(manifest, "score", {"sentence_confidence": CERTAIN}),
        *(
            changed(manifest, "score", {"confidence": CERTAIN.model_copy(update={name: 9.0})})
            for name in ConfidenceEntry.model_fields
        ),
        changed(manifest, "encoder", {"max_question_tokens": 9}),
        changed(manifest, "encoder", {"question_precision": "bf16"}),
        changed(manifest, "encoder", {"passage_token_types": (0, 1)}),
        changed(manifest, "reader", {"max_answer_tokens": 9}),
        changed(manifest, "reader", {"window_overlap": 9}),
        *(
            manifest.model_copy(
                update={
                    "files": {
                        **manifest.files,
                        name: manifest.files[name].model_copy(update={"sha256": OTHER}),
                    }
                }
            )
            for name in manifest.files
        ),
    ]
    fingerprints = {other.fingerprint for other in (manifest, *others)}
    assert len(fingerprints) == len(others) + 1


def test_the_encoding_of_questions_does_not_change_an_index(bundle: Bundle) -> None:
    manifest = bundle.manifest
    for name, value in (("max_question_tokens", 9), ("question_precision", "bf16")):
        assert name in BundleEncoder.model_fields
        other = changed(manifest, "encoder", {name: value})
        assert other.encoding_fingerprint == manifest.encoding_fingerprint
    for part in ({"stopping": ()}, {"untrained": True}):
        other = manifest.model_copy(update=part)
        assert other.encoding_fingerprint == manifest.encoding_fingerprint
