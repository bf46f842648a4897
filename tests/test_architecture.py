"""Who may import whom."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ARROWS = {
    "winnow": {"winnow"},
    "encoder_node": {"encoder_node", "winnow"},
    "head_node": {"head_node", "winnow"},
    "stateless": {"stateless", "winnow"},
    "content_node": {"content_node", "winnow"},
    "models": {"models", "content_node", "winnow"},
}
SERVING = ("winnow", "stateless", "content_node", "encoder_node", "head_node")
PURE = [
    "winnow/domain",
    "winnow/address.py",
    "winnow/deadline.py",
    "winnow/errors.py",
    "winnow/heads/asking.py",
    "winnow/heads/placed.py",
    "winnow/journal/journal.py",
    "winnow/journal/pulling.py",
    "winnow/filtering",
    "winnow/keys",
    "winnow/caller.py",
    "winnow/single_flight.py",
    "winnow/telemetry/tracing/queue.py",
    "winnow/telemetry/tracing/recorded.py",
    "winnow/telemetry/tracing/span.py",
    "winnow/telemetry/tracing/traceparent.py",
    "winnow/telemetry/tracing/tracer.py",
    "winnow/text/entities.py",
    "winnow/text/rarity.py",
    "winnow/text/scores.py",
    "winnow/policy",
    "winnow/heads/artefact.py",
    "winnow/heads/cache.py",
    "winnow/heads/head.py",
    "winnow/heads/labels.py",
    "winnow/heads/loader.py",
    "winnow/heads/loading.py",
    "winnow/heads/local.py",
    "winnow/heads/run.py",
    "winnow/heads/spans.py",
    "winnow/heads/store",
    "winnow/heads/swap.py",
    "winnow/passages",
    "winnow/storage",
    "stateless/policy",
    "stateless/cluster",
    "stateless/replicas/call.py",
    "stateless/replicas/pool.py",
    "stateless/replicas/replicated.py",
    "stateless/answer/admission.py",
    "stateless/answer/speculative_reads.py",
    "stateless/answer/answering.py",
    "stateless/answer/calls.py",
    "stateless/answer/choose.py",
    "stateless/answer/core.py",
    "stateless/answer/failures.py",
    "stateless/answer/fields.py",
    "stateless/answer/findings.py",
    "stateless/answer/stale_hits.py",
    "stateless/answer/merge.py",
    "stateless/answer/recording.py",
    "stateless/answer/answer_cache.py",
    "stateless/answer/scatter.py",
    "stateless/answer/search.py",
    "stateless/answer/validation.py",
    "stateless/feed/admission.py",
    "stateless/feed/core.py",
    "stateless/feed/encoding.py",
    "stateless/feed/ordered_pipeline.py",
    "stateless/feed/storing.py",
    "stateless/feed/tally.py",
    "stateless/feed/targets.py",
    "stateless/feed/validation.py",
    "stateless/feed/writers.py",
    "stateless/words/counts.py",
    "stateless/words/served.py",
    "stateless/words/source.py",
    "stateless/words/statistics.py",
    "stateless/heads/admission.py",
    "stateless/heads/core.py",
    "stateless/heads/entities.py",
    "stateless/heads/predictor.py",
    "stateless/heads/questions.py",
    "stateless/heads/encoder_group_setting.py",
    "stateless/heads/encoder_groups.py",
    "stateless/heads/text.py",
    "stateless/heads/validation.py",
    "stateless/http/connection_limiter.py",
    "stateless/http/headers.py",
    "stateless/http/hosts.py",
    "stateless/showing/core.py",
    "stateless/showing/work.py",
    "encoder_node/admission.py",
    "encoder_node/validation.py",
    "head_node/admission.py",
    "head_node/validation.py",
    "content_node/admission.py",
    "content_node/validation.py",
    "content_node/reader",
    "content_node/live",
    "content_node/shard",
    "content_node/indexing",
    "content_node/merging",
    "content_node/journal/following.py",
    "content_node/journal/journaled.py",
    "content_node/snapshots",
    "content_node/measuring",
    "content_node/searcher.py",
    "winnow/sizing",
    "winnow/cli/plan",
]

POLICIES = [
    "winnow/policy",
    "winnow/replicas/policy",
    "stateless/policy",
    "content_node/merging/policy.py",
]
CALCULATING = {
    "bisect",
    "collections",
    "dataclasses",
    "enum",
    "hashlib",
    "math",
    "random",
    "statistics",
    "types",
    "typing",
}
"""Modules of the standard library that neither wait, nor look at a clock, nor do I/O."""


def files(place: str) -> list[Path]:
    path = ROOT / place
    found = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert found, f"{place} has no Python files"
    return [file for file in found if "winnow/v1" not in str(file)]


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            assert node.module is not None
            yield node.module


def package_of(name: str) -> str:
    """The folder of the checkout that a module lies in: `stateless` for `winnow.stateless.cli`."""
    top, _, rest = name.partition(".")
    service = rest.partition(".")[0]
    return service if top == "winnow" and service in SERVING else top


def test_links_make_the_services_part_of_winnow() -> None:
    """So that an import has one form in the checkout and in the wheel."""
    for service in SERVING[1:]:
        assert (ROOT / "winnow" / service).readlink() == Path("..", service)


@pytest.mark.parametrize("package", ARROWS)
def test_packages_import_only_along_the_arrows(package: str) -> None:
    ours = set(ARROWS)
    for file in files(package):
        for name in imports(file):
            assert name.partition(".")[0] not in SERVING[1:], f"{file}: import winnow.{name}"
            root = package_of(name)
            if root in ours:
                assert root in ARROWS[package], f"{file} imports {name}"


@pytest.mark.parametrize("place", PURE)
def test_policies_know_neither_grpc_nor_protobuf(place: str) -> None:
    for file in files(place):
        for name in imports(file):
            assert name.partition(".")[0] != "grpc", f"{file} imports {name}"
            assert not name.startswith(("google.protobuf", "winnow.v1", "winnow.rpc")), (
                f"{file} imports {name}"
            )


@pytest.mark.parametrize("place", POLICIES)
def test_policies_only_calculate(place: str) -> None:
    """Clocks and chance are given to them, so that tests can say what time it is."""
    ours = (
        "winnow.policy",
        "winnow.replicas.policy",
        "winnow.stateless.policy",
        "winnow.deadline",
        "winnow.errors",
    )
    for file in files(place):
        for name in imports(file):
            known = name.partition(".")[0] in CALCULATING or name.startswith(ours)
            assert known, f"{file} imports {name}"


def test_nothing_imports_the_commands_but_commands() -> None:
    for package in ARROWS:
        for file in files(package):
            if "winnow/cli" in str(file) or file.name == "__main__.py":
                continue
            for name in imports(file):
                assert not f"{name}.".startswith("winnow.cli."), f"{file} imports {name}"


def test_only_processes_put_themselves_together() -> None:
    """Everything else is given what it works with."""
    for package in SERVING:
        for file in files(package):
            if file.name == "__main__.py" or "composing" in file.parts:
                continue
            for name in imports(file):
                assert ".composing" not in name, f"{file} imports {name}"


def test_services_never_import_the_training_libraries() -> None:
    for package in SERVING:
        for file in files(package):
            roots = {name.partition(".")[0] for name in imports(file)}
            assert not roots & {"torch", "transformers", "tantivy"}, file
            # a command that makes models to measure them, and serves nobody
            assert "onnx" not in roots or "winnow/cli/ladder" in str(file), file


def test_one_file_knows_opentelemetry() -> None:
    """It is an extra, and is imported where somebody traces."""
    knows = [
        str(file.relative_to(ROOT))
        for package in SERVING
        for file in files(package)
        if "opentelemetry" in file.read_text(encoding="utf-8")
        and any(name.startswith("opentelemetry") for name in imports(file))
    ]
    assert knows == ["winnow/telemetry/tracing/otlp.py"]


def test_code_that_needs_pytorch_is_checked_where_pytorch_is() -> None:
    """`make test` checks and runs all other code on machines without it."""
    listed = re.search(r"^NEEDS_TORCH\s*:=((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.M)
    assert listed is not None
    apart = [ROOT / place for place in listed[1].replace("\\", " ").split()]
    assert all(place.exists() for place in apart)
    for package in (*SERVING, "bench", "tests"):
        for file in files(package):
            if not any(file.is_relative_to(place) for place in apart):
                roots = {name.partition(".")[0] for name in imports(file)}
                assert not roots & {"torch", "transformers", "safetensors", "tantivy"}, file


def test_the_commands_of_services_are_named_and_not_imported() -> None:
    text = (ROOT / "winnow" / "cli" / "commands.py").read_text(encoding="utf-8")
    assert "winnow.stateless.cli:front" in text
    assert "winnow.content_node.cli:node" in text
    assert "winnow.encoder_node.cli:encoder" in text
    assert "winnow.head_node.cli:serve" in text
