"""Fixtures that many tests share: bundles, small indexes, and a recorder of builds."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import long_deadlines
import needs
import property_profiles
import pytest
import short_warm_up
import skipped
import structlog
from children_in_process import run_children
from forked_commands import commands_forked
from nats_server import NatsServer
from shared_models import opened_once
from whole_bundle import WHOLE

from winnow.bundle import Bundle, load_bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.shard.hnsw import can_use_graphs
from winnow.documents.folder import SkippedFile
from winnow.packaged import default_bundle
from winnow.passages.rows import BadRow
from winnow.settings.common import cores

property_profiles.register()

# containers often set it, but tests start hundreds of processes, and each would compile all modules
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skipped-to", type=Path, help="file for the number of skipped tests by reason"
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    skipped.tell(terminalreporter, config.getoption("--skipped-to"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Returns two processes for each core, because tests wait for half of their time."""
    return 2 * cores()


_SLOW = (
    "system/test_scaling.py",
    "system/test_command_line.py",
    "standalone/test_index.py",
    "content_node/merging/test_crashes.py",
    "system",
    "standalone",
    "content_node",
    "models",
)
"""The slowest files and folders of tests, the slowest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves slow files to the front, so that no process is left with one at the end of a run.

    Skips tests of graphs where hnswlib is missing.
    """
    slow = [str(Path(__file__).parent / each) for each in _SLOW]

    def place(item: pytest.Item) -> int:
        own = str(item.path)
        return next((n for n, path in enumerate(slow) if own.startswith(path)), len(slow))

    items.sort(key=place)
    if not can_use_graphs():
        for item in items:
            if item.get_closest_marker("graph"):
                item.add_marker(pytest.mark.skip(reason=needs.HNSWLIB))


PASSAGES = [
    (
        "tour",
        "Tour de France",
        "Chris Froome won the 2015 Tour de France, ahead of Nairo Quintana.",
    ),
    ("nibali", "Tour de France", "Vincenzo Nibali of Italy won the 2014 Tour de France."),
    (
        "danube",
        "Danube",
        "The Danube rises in the Black Forest and flows 2,850 km to the Black Sea.",
    ),
    (
        "everest",
        "Mount Everest",
        "Mount Everest is 8,848.86 metres high. Junko Tabei climbed it in 1975.",
    ),
    (
        "dvorak",
        "Antonín Dvořák",
        "Antonín Dvořák wrote the opera Rusalka in Prague — a 🎻 favourite.",
    ),
    ("combining", "Łódź", "The cafe\u0301 in Łódź was opened by Zoe\u0308 Nowak in 1923."),
    ("octopus", "Octopus", "An octopus has three hearts and eight arms."),
    ("gold", "Gold", "Gold has the chemical symbol Au and the atomic number 79."),
    ("penicillin", "Penicillin", "Alexander Fleming discovered penicillin in London in 1928."),
    (
        "moon",
        "Moon landing",
        "Neil Armstrong was the first person to walk on the Moon, in July 1969.",
    ),
    (
        "colosseum",
        "Colosseum",
        "The Colosseum in Rome was begun by the emperor Vespasian around AD 72.",
    ),
    ("long", "Long", " ".join(f"Item number {n} is kept in drawer {n + 7}." for n in range(120))),
]

QUESTIONS = [
    ("Who won the Tour de France in 2015?", "Chris Froome"),
    ("Who discovered penicillin?", "Alexander Fleming"),
    ("How many hearts does an octopus have?", "three"),
    ("Who was the first person to walk on the Moon?", "Neil Armstrong"),
]


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Restores signal handlers, because commands that run in this process change them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    """Restores the configuration of logs, because an index that is opened in this process sets it.

    A test that reads a log line would otherwise depend on the tests before it.
    """
    before = structlog.get_config() if structlog.is_configured() else None
    yield
    if before is None:
        structlog.reset_defaults()
    else:
        structlog.configure(**before)


@pytest.fixture(autouse=True, scope="session")
def _environment() -> Iterator[None]:
    """Removes the `WINNOW_` variables of the machine, and makes default deadlines long."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("WINNOW_")]:
            patch.delenv(name)
        long_deadlines.set_in_processes(patch)
        long_deadlines.set_in_clients(patch)
        long_deadlines.set_in_servers(patch)
        long_deadlines.set_in_fronts(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def _shared_models() -> Iterator[None]:
    with opened_once():
        yield


@pytest.fixture(autouse=True, scope="session")
def _children() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        run_children(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def _short_warm_up() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        short_warm_up.shorten(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def _forked_commands() -> Iterator[None]:
    with commands_forked():
        yield


@dataclass
class Recorder:
    """Records the progress that a build reports."""

    stages: list[tuple[str, int | None, int]] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    advanced: int = 0
    kept_in: list[Path] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    changed: list[tuple[int, int]] = field(default_factory=list)
    unread: list[tuple[Mapping[str, int], int]] = field(default_factory=list)

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        self.stages.append((stage, total, done))

    def advance(self, steps: int) -> None:
        self.advanced += steps

    def bad_row(self, row: BadRow) -> None:
        self.bad_rows.append(row)

    def skipped_file(self, file: SkippedFile) -> None:
        self.skipped.append(file)

    def unread_languages(self, passages: Mapping[str, int], total: int) -> None:
        self.unread.append((passages, total))

    def shards_chosen(self, shards: int) -> None:
        self.chosen.append(shards)

    def folder_changed(self, passages: int, encoded: int) -> None:
        self.changed.append((passages, encoded))

    def workspace_kept(self, directory: Path) -> None:
        self.kept_in.append(directory)


class InterruptedAfterStaging(Recorder):
    """Raises what Ctrl-C raises, when every passage is staged."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        super().start(stage, total, done)
        if stage == "encoding passages":
            raise KeyboardInterrupt


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "nats").start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def bundle() -> Bundle:
    return load_bundle(default_bundle())


@pytest.fixture(scope="session")
def whole() -> Bundle:
    """The bundle whose reader sees question and passage together in every layer."""
    return load_bundle(WHOLE)


@pytest.fixture(scope="session")
def passages_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("passages") / "passages.jsonl"
    rows = [{"id": i, "title": title, "text": text} for i, title, text in PASSAGES]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def indexes(
    bundle: Bundle, passages_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, Path]:
    """Indexes of the same passages in 1, 2, 3 and 8 shards, by the number of shards."""
    root = tmp_path_factory.mktemp("indexes")
    for shards in (1, 2, 3, 8):
        plan = BuildPlan(source=passages_file, target=root / str(shards), shards=shards, threads=2)
        build_index(plan, bundle, Recorder())
    return {shards: root / str(shards) for shards in (1, 2, 3, 8)}


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
