"""The commands and programs of a page work as written, in their order.

Each page runs in a separate directory with the files that it names, against a real cluster.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Recorder
from small_heads import small_head
from tenacious import until
from written import PAGES, Block, Command, Kind, blocks, commands
from written_rules import PROGRAMS, How, rule_of

from winnow.bundle import Bundle
from winnow.cli.commands import build_app
from winnow.cli.exits import exit_code
from winnow.cli.help_texts import with_wrapped_help
from winnow.cli.local.ports import free_ports
from winnow.client.messages import AnswerClient
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.heads.store import open_store
from winnow.packaged import demo_corpus

pytestmark = pytest.mark.timeout(300)
SHARDS = 3
PASSAGES = 60
"""The first passages of the demo; they answer the questions of the pages."""
BESIDE = {"metadata": {"year": 2015, "lang": "en"}}
"""Metadata for the filters of the pages."""
ASKS = {"ask", "passages", "predict", "search"}


@dataclass
class Workspace:
    """Files and addresses of a reader before a page begins."""

    directory: Path
    front: str
    feed: str


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, bundle: Bundle) -> Iterator[Workspace]:
    """Passages, an index of them, a head in a store, and a cluster that serves all of it."""
    directory = tmp_path_factory.mktemp("workspace")
    rows = [json.loads(line) for line in passages()]
    write(directory / "my.jsonl", [{**row, **BESIDE} for row in rows])
    write(directory / "more.jsonl", [{**rows[0], **BESIDE, "id": "more"}])
    plan = BuildPlan(
        source=directory / "my.jsonl", target=directory / "my-index", shards=SHARDS, threads=2
    )
    build_index(plan, bundle, Recorder())
    small_head(
        directory / "tickets-head",
        "tickets",
        width=bundle.manifest.encoder.dimension,
        fingerprint=bundle.manifest.states_fingerprint,
    )
    open_store(directory / "my-heads").publish(directory / "tickets-head")
    ports = free_ports(2)
    made = Workspace(directory, *(f"127.0.0.1:{port}" for port in ports))
    running = serve(made)
    try:
        until(lambda: running.poll() is not None or asyncio.run(serving(made.front)))
        assert running.poll() is None, (directory / "log").read_text(encoding="utf-8")
        yield made
    finally:
        running.terminate()
        running.wait(60)


def passages() -> list[str]:
    return (demo_corpus() / "passages.jsonl").read_text(encoding="utf-8").splitlines()[:PASSAGES]


def write(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def serve(workspace: Workspace) -> "subprocess.Popen[bytes]":
    """Starts `winnow up` with the options of all pages."""
    copy = workspace.directory / "served"
    shutil.copytree(workspace.directory / "my-index", copy)
    command = [sys.executable, "-m", "winnow", "up", "--index", str(copy)]
    command += ["--heads", str(workspace.directory / "my-heads")]
    command += ["--listen", workspace.front, "--feed-listen", workspace.feed]
    command += ["--http-listen", "127.0.0.1:0"]
    with (workspace.directory / "log").open("wb") as log:
        return subprocess.Popen(command, stderr=log)


async def serving(address: str) -> bool:
    async with AnswerClient(address) as client:
        return await client.available()


class Reader:
    """Runs the commands and programs of a page."""

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        self._workspace, self._directory = workspace, directory

    def run_command(self, command: Command) -> int:
        """Runs a command and returns its exit code."""
        words = [self._with_real_names(word) for word in command.words[1:]]
        if words[0] in ASKS and "--address" not in words:
            words += ["--address", self._workspace.front, "--timeout", "30"]
        self._copy_inputs(words)
        entry = with_wrapped_help(build_app(words))
        return exit_code(
            lambda: entry(args=words, prog_name="winnow", standalone_mode=False), "winnow"
        )

    def run_program(self, block: Block) -> None:
        """Runs a program."""
        self._copy_inputs(re.findall(r'"([\w.-]+)"', block.text))
        exec(compile(self._with_real_names(block.text), f"{block.page}:{block.line}", "exec"), {})

    def _with_real_names(self, text: str) -> str:
        """The text with placeholders replaced by files and addresses of the workspace."""
        workspace = self._workspace
        for shown, here in (
            ("127.0.0.1:8080", workspace.front),
            ("127.0.0.1:8081", workspace.feed),
            ("s3://bucket", f"{self._directory}/bucket"),
            ("FILE", "my.jsonl"),
        ):
            text = text.replace(shown, here)
        return text

    def _copy_inputs(self, words: list[str]) -> None:
        """Copies the files that a command reads, unless an earlier command made them."""
        for before, word in zip(["", *words], words, strict=False):
            there = self._workspace.directory / word
            if before in ("--out", "--store") or "/" in word or not there.exists():
                continue
            if not os.path.lexists(word):
                copy: Any = shutil.copytree if there.is_dir() else shutil.copy
                copy(there, word)


def steps(page: str) -> list[Command | Block]:
    """The commands and programs of a page that run here."""
    found: list[Command | Block] = []
    for block in blocks(page):
        if block.kind is Kind.PYTHON and page not in PROGRAMS:
            found.append(block)
        elif block.kind is Kind.SHELL:
            ruled = ((each, rule_of(each)) for each in commands(block))
            found += [each for each, rule in ruled if rule is not None and rule.how is How.RUN]
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if steps(page)])
def test_a_page_works_as_written(
    page: str,
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(workspace, tmp_path)
    for step in steps(page):
        if isinstance(step, Block):
            reader.run_program(step)
            continue
        code = reader.run_command(step)
        said = capsys.readouterr()
        assert code == 0, f"{step}: {said.err}"
        assert step.says in said.out
