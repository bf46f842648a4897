"""Checks which packages and files may import which modules."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from winnow.documents.formats.registry import PARSERS

ROOT = Path(__file__).parent.parent
ARROWS = {
    "winnow": {"winnow"},
    "encoder_node": {"encoder_node", "winnow"},
    "head_node": {"head_node", "winnow"},
    "stateless": {"stateless", "winnow"},
    "content_node": {"content_node", "winnow"},
    "standalone": {"standalone", "stateless", "content_node", "winnow"},
    "models": {"models", "content_node", "winnow"},
}
SERVING = ("winnow", "stateless", "content_node", "encoder_node", "head_node", "standalone")
PURE = {"policy", "domain"}
"""Names of folders and files with pure code: no I/O, no clock, no asyncio."""
TRANSPORT_FOLDERS = {
    "rpc", "convert", "client", "cli", "http", "mcp", "composing", "security", "v1"
}  # fmt: skip
TRANSPORT_FILES = {
    "__main__", "servicer", "remote", "server", "messages",  # one end of a call
    "otlp",  # sends spans
    "early_rejection", "file_changes",  # configure a server
}  # fmt: skip
"""Files that may import gRPC and messages; longer names such as `feed_servicer` count, too."""
CALCULATING = {
    "bisect",
    "collections",
    "dataclasses",
    "enum",
    "hashlib",
    "heapq",
    "math",
    "random",
    "statistics",
    "types",
    "typing",
    "__future__",
    "numpy",
}
"""Modules that pure code may import: they have no I/O, no clock and no waiting."""


def files(place: str) -> list[Path]:
    path = ROOT / place
    found = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert found, f"{place} has no Python files"
    return [file for file in found if "winnow/v1" not in str(file)]


@cache
def imports(file: Path, types: bool = True) -> tuple[str, ...]:
    """Returns the modules that a file imports; without `types`, not those under TYPE_CHECKING."""
    return tuple(_imports(file, types))


def _imports(file: Path, types: bool) -> Iterator[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    guarded = [each for each in ast.walk(tree) if isinstance(each, ast.If) and not types]
    typing = {
        each
        for block in guarded
        if ast.unparse(block.test) == "TYPE_CHECKING"
        for each in ast.walk(block)
    }
    for node in ast.walk(tree):
        if node in typing:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            assert node.module is not None
            yield node.module


def package_of(name: str) -> str:
    """Returns the checkout folder of a module: `stateless` for `winnow.stateless.cli`."""
    top, _, rest = name.partition(".")
    service = rest.partition(".")[0]
    return service if top == "winnow" and service in SERVING else top


def test_links_make_the_services_part_of_winnow() -> None:
    """Imports then have the same form in the checkout and in the wheel."""
    for service in SERVING[1:]:
        assert (ROOT / "winnow" / service).readlink() == Path("..", service)


@pytest.mark.parametrize("package", ARROWS)
def test_packages_import_only_allowed_packages(package: str) -> None:
    ours = set(ARROWS)
    for file in files(package):
        for name in imports(file):
            assert name.partition(".")[0] not in SERVING[1:], f"{file}: import winnow.{name}"
            root = package_of(name)
            # only type checkers follow it: a program imports `Index` when it uses it
            is_door = file == ROOT / "winnow" / "__init__.py" and name == "winnow.standalone.index"
            if root in ours and not is_door:
                assert root in ARROWS[package], f"{file} imports {name}"


def is_pure(file: Path) -> bool:
    return bool(PURE & set(file.relative_to(ROOT).with_suffix("").parts))


def test_policy_and_domain_folders_are_pure() -> None:
    """Callers pass clocks and random generators, so that tests can control them."""
    for file in [each for package in SERVING for each in files(package) if is_pure(each)]:
        for name in imports(file, types=False):
            parts = name.split(".")
            ours = parts[0] == "winnow" and (
                PURE & set(parts) or parts[1] in ("deadline", "errors")
            )
            assert ours or parts[0] in CALCULATING, f"{file} imports {name}"


def test_transport_is_imported_only_where_it_belongs() -> None:
    for file in [each for package in SERVING for each in files(package)]:
        last = file.stem.rpartition("_")[2]
        place = set(file.relative_to(ROOT).parts)
        if place & TRANSPORT_FOLDERS or {file.stem, last} & TRANSPORT_FILES:
            continue
        for name in imports(file):
            assert name.partition(".")[0] != "grpc", f"{file} imports {name}"
            assert not name.startswith(("google.protobuf", "winnow.v1", "winnow.rpc")), (
                f"{file} imports {name}"
            )


def test_only_commands_import_commands() -> None:
    """Commands of the services may import how commands print, and options that they share."""
    shared = tuple(f"winnow.cli.{each}." for each in ("output", "options", "peers"))
    for package in ARROWS:
        for file in files(package):
            if "winnow/cli" in str(file) or file.name == "__main__.py":
                continue
            is_command = file.name == "cli.py" or "models/cli" in str(file)
            for name in imports(file):
                if is_command and f"{name}.".startswith(shared):
                    continue
                assert not f"{name}.".startswith("winnow.cli."), f"{file} imports {name}"


def test_only_main_modules_compose_processes() -> None:
    """All other code gets its collaborators as arguments."""
    for package in SERVING:
        for file in files(package):
            # an `Index` is a process within a process
            composes = file == ROOT / "standalone" / "index.py" or file.name == "__main__.py"
            if composes or "composing" in file.parts:
                continue
            for name in imports(file):
                assert ".composing" not in name, f"{file} imports {name}"


def test_services_never_import_the_training_libraries() -> None:
    for package in SERVING:
        for file in files(package):
            roots = {name.partition(".")[0] for name in imports(file)}
            assert not roots & {"torch", "transformers", "tantivy"}, file
            # `winnow bench classification` makes models to measure them
            assert "onnx" not in roots or "winnow/cli/ladder" in str(file), file


def test_only_one_file_imports_opentelemetry() -> None:
    """OpenTelemetry is an optional dependency, imported only if tracing is enabled."""
    knows = [
        str(file.relative_to(ROOT))
        for package in SERVING
        for file in files(package)
        if "opentelemetry" in file.read_text(encoding="utf-8")
        and any(name.startswith("opentelemetry") for name in imports(file))
    ]
    assert knows == ["winnow/telemetry/tracing/otlp.py"]


def test_only_the_rooms_for_agents_import_their_package() -> None:
    """The package is optional. A front imports it at the first request of an agent."""
    rooms = [ROOT / place for place in ("winnow/mcp", "stateless/mcp", "winnow/cli/mcp")]
    for file in [each for package in SERVING for each in files(package)]:
        roots = {name.partition(".")[0] for name in imports(file)}
        assert not roots & {"mcp", "mcp_types"} or any(map(file.is_relative_to, rooms)), file


def test_only_the_formats_of_documents_import_their_libraries() -> None:
    """The libraries are optional, and parse hostile files only in worker processes."""
    formats = ROOT / "winnow" / "documents" / "formats"
    for file in [each for package in SERVING for each in files(package)]:
        roots = {name.partition(".")[0] for name in imports(file)}
        assert not roots & set(PARSERS) or file.is_relative_to(formats), file


def test_services_convert_only_uploaded_documents() -> None:
    """Commands do, and the build of an index, which may belong to a service."""
    uploads = {"stateless/composing/feed.py", "stateless/feed/document_conversion.py"}
    for package in SERVING[1:-1]:
        for file in files(package):
            if "cli" in file.stem or {"cli", "indexing"} & set(file.parts):
                continue
            knows = any(name.startswith("winnow.documents") for name in imports(file))
            assert not knows or str(file.relative_to(ROOT)) in uploads, file


def test_the_makefile_lists_all_code_that_needs_pytorch() -> None:
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


def test_commands_of_services_are_imported_lazily() -> None:
    text = (ROOT / "winnow" / "cli" / "commands.py").read_text(encoding="utf-8")
    assert "winnow.stateless.cli:front" in text
    assert "winnow.content_node.cli:node" in text
    assert "winnow.encoder_node.cli:encoder" in text
    assert "winnow.head_node.cli:serve" in text


RUNNING = ("grpc", "hnswlib", "numpy", "onnxruntime", "prometheus_client", "starlette", "structlog")
"""Libraries that only a running process needs."""
SLOW_IMPORTS = {
    "winnow.cli.commands": (*RUNNING, "asyncio", "pydantic", "rich.console"),
    "winnow.cli.ask.cli": RUNNING,
    "winnow.cli.ask.answering": (
        "hnswlib",
        "numpy",
        "onnxruntime",
        "structlog",
        "winnow.standalone",
    ),
    "winnow.stateless.cli": RUNNING,
    "winnow.content_node.cli": RUNNING,
    "winnow.standalone.cli": RUNNING,
    "winnow.encoder_node.cli": RUNNING,
    "winnow.head_node.cli": RUNNING,
}
"""By module, what it must not import: each would delay the start of its command, and its help."""


@pytest.mark.parametrize("module", SLOW_IMPORTS)
def test_commands_start_without_libraries_that_they_do_not_need(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(ran.stdout.split()) & set(SLOW_IMPORTS[module])
