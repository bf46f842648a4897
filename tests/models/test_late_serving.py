"""An index with token vectors gives the same answers for any number of shards, and without token
vectors it is ranked as before.
"""

import shutil
from pathlib import Path

import pytest
import torch
from conftest import QUESTIONS, Recorder
from typer.testing import CliRunner

from models.assemble import amend_manifest
from models.network.late_interaction import LateInteraction
from models.steps.late_interaction import add_late_interaction
from winnow import Index
from winnow.bundle import Bundle, load_bundle
from winnow.client import Options, PassageFields
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.cli import app
from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.indexing.engine import LocalEngine
from winnow.content_node.indexing.plan import BuildListener, BuildPlan
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.content_node.states.index import write_states
from winnow.index_directory import shard_directories
from winnow.packaged import default_bundle
from winnow.reading.states_kind import READER_STATES, TOKEN_VECTORS

pytestmark = pytest.mark.bundle
FEW: Options = {"max_loss": 0, "passages_to_read": 3}
NEW: PassageFields = {
    "id": "zorblax",
    "title": "Zorblax Prize",
    "text": "The Zorblax Prize of 2031 was won by Marta Quendelheim.",
}
ASKED = "Who won the Zorblax Prize in 2031?"


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The default bundle with a random projection, which keeps much of the states."""
    torch.manual_seed(1)
    target = tmp_path_factory.mktemp("bundle") / "late"
    projection = LateInteraction(384, 32, (4, 6))
    manifest = add_late_interaction(default_bundle(), target, projection, "9")
    assert manifest.late_interaction is not None
    weights = {"words": 0.025, "tokens": 0.25}
    amend_manifest(target, late_interaction={**manifest.late_interaction.model_dump(), **weights})
    return load_bundle(target)


@pytest.fixture(scope="module")
def copies(
    indexes: dict[int, Path], late: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, Path]:
    """Indexes of 1 and 3 shards with token vectors."""
    root = tmp_path_factory.mktemp("late-indexes")
    for shards in (1, 3):
        shutil.copytree(indexes[shards], root / str(shards))
        write_states(root / str(shards), late, 2, Recorder(), TOKEN_VECTORS)
    return {shards: root / str(shards) for shards in (1, 3)}


def ask_all(index: Index) -> list[list[tuple[str, str, float]]]:
    """The answers to some questions: their texts, passages and hybrid distances."""
    asked = [ASKED, *(question for question, _ in QUESTIONS)]
    replies = [index.ask(each, **FEW, timeout=60.0) for each in asked]
    assert all(reply.coverage.complete for reply in replies)
    return [
        [(each.text, each.passage.id, each.hybrid_distance) for each in reply.answers]
        for reply in replies
    ]


def test_answers_are_the_same_for_any_number_of_shards(
    copies: dict[int, Path], indexes: dict[int, Path], late: Bundle
) -> None:
    answers = []
    for directory in (*copies.values(), indexes[1]):
        with Index.open(directory, bundle=late.directory) as index:
            answers.append(ask_all(index))
    one, three, without = answers
    assert one == three != without


def test_a_new_passage_is_found_before_and_after_a_merge(
    copies: dict[int, Path], late: Bundle, tmp_path: Path
) -> None:
    directory = shutil.copytree(copies[3], tmp_path / "index")
    with Index.open(directory, bundle=late.directory, writable=True) as index:
        index.put(NEW)
        assert index.ask(ASKED, **FEW, timeout=60.0).answer == "Marta Quendelheim"
        index.merge()
        assert index.ask(ASKED, **FEW, timeout=60.0).answer == "Marta Quendelheim"
    for shard in shard_directories(directory):
        base = read_current_shard(shard)
        assert base.passages_with(TOKEN_VECTORS) == base.manifest.passages


def test_token_vectors_of_another_bundle_leave_the_ranking_as_without_late_interaction(
    indexes: dict[int, Path], late: Bundle, tmp_path: Path
) -> None:
    with Index.open(indexes[3], bundle=late.directory) as index:
        without = ask_all(index)
    plain = shutil.copytree(default_bundle(), tmp_path / "plain")
    amend_manifest(plain, late_interaction=None)
    with Index.open(indexes[3], bundle=plain) as index:
        assert ask_all(index) == without


def test_a_build_computes_vectors_and_token_vectors_in_one_run(
    copies: dict[int, Path],
    passages_file: Path,
    late: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They equal the token vectors that were added to an existing index."""

    def fail(*_: object) -> None:
        raise AssertionError("the encoder was run again")

    with monkeypatch.context() as patched:
        patched.setattr(PassageTokens, "levels", fail)
        plan = BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1)
        build_index(plan, late, Recorder())
    (built,), (added,) = (shard_directories(each) for each in (plan.target, copies[1]))
    data = TOKEN_VECTORS.data
    assert (built / data).read_bytes() == (added / data).read_bytes()
    assert not (built / TOKEN_VECTORS.lock).exists()


def test_a_resumed_build_computes_token_vectors_that_it_lacks(
    passages_file: Path, late: Bundle, tmp_path: Path
) -> None:
    """A build may have begun with a bundle that has no late interaction."""

    class Stopped(LocalEngine):
        def encode(self, staging: Staging, bundle: Bundle, progress: BuildListener) -> None:
            super().encode(staging, bundle, progress)
            raise KeyboardInterrupt

    target = tmp_path / "index"
    plan = BuildPlan(source=passages_file, target=target, shards=2, threads=1)
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, load_bundle(default_bundle()), Recorder(), Stopped(1))
    flags = ["--passages", str(passages_file), "--bundle", str(late.directory), "--shards", "2"]
    result = CliRunner().invoke(app, ["build", "--out", str(tmp_path / "index"), *flags])
    assert result.exit_code == 0, result.output
    for shard in shard_directories(tmp_path / "index"):
        base = read_current_shard(shard)
        assert base.data(READER_STATES) is None
        assert base.passages_with(TOKEN_VECTORS) == base.manifest.passages
