"""The commands and the programs of a page work as they are written, in their order.

A page is typed in a directory of its own, which has the files that it speaks of. The addresses
that it names are those of a real cluster.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Recorder
from held_ports import free_ports
from small_heads import small_head
from tenacious import until
from written import PAGES, Block, Command, Kind, blocks, commands
from written_rules import PROGRAMS, How, rule_of

from winnow.bundle import Bundle
from winnow.cli.commands import app
from winnow.cli.exits import exit_code
from winnow.cli.help_texts import with_flowing_help
from winnow.client.messages import AnswerClient
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.heads.store import open_store
from winnow.packaged import demo_corpus

pytestmark = pytest.mark.timeout(300)
SHARDS = 3
PASSAGES = 60
"""Of the demo's, the first; what pages ask for is among them."""
BESIDE = {"metadata": {"year": 2015, "lang": "en"}}
"""What pages filter by."""
ASKS = {"ask", "predict"}


@dataclass
class House:
    """What a reader has before a page begins."""

    directory: Path
    front: str
    feed: str


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, bundle: Bundle) -> Iterator[House]:
    """Passages, an index of them, a head, a store that has it, and a cluster with all of it."""
    directory = tmp_path_factory.mktemp("house")
    rows = [json.loads(line) for line in passages()]
    write(directory / "my.jsonl", [{**row, **BESIDE} for row in rows])
    write(directory / "more.jsonl", [{**rows[0], **BESIDE, "id": "more"}])
    plan = BuildPlan(directory / "my.jsonl", directory / "my-index", SHARDS, threads=2)
    build_index(plan, bundle, Recorder())
    small_head(
        directory / "tickets-head",
        "tickets",
        width=bundle.manifest.encoder.dimension,
        fingerprint=bundle.manifest.states_fingerprint,
    )
    open_store(directory / "my-heads").publish(directory / "tickets-head")
    ports = free_ports(2)
    made = House(directory, *(f"127.0.0.1:{port}" for port in ports))
    running = serve(made)
    try:
        until(lambda: running.poll() is not None or asyncio.run(serving(made.front)), 240)
        assert running.poll() is None, (directory / "log").read_text(encoding="utf-8")
        yield made
    finally:
        running.terminate()
        running.wait(60)


def passages() -> list[str]:
    return (demo_corpus() / "passages.jsonl").read_text(encoding="utf-8").splitlines()[:PASSAGES]


def write(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def serve(house: House) -> "subprocess.Popen[bytes]":
    """`winnow up`, with all options that pages give it."""
    copy = house.directory / "served"
    shutil.copytree(house.directory / "my-index", copy)
    command = [sys.executable, "-m", "winnow", "up", "--index", str(copy)]
    command += ["--heads", str(house.directory / "my-heads")]
    command += ["--listen", house.front, "--feed-listen", house.feed]
    command += ["--http-listen", "127.0.0.1:0"]
    with (house.directory / "log").open("wb") as log:
        return subprocess.Popen(command, stderr=log)


async def serving(address: str) -> bool:
    async with AnswerClient(address) as client:
        return await client.available()


class Reader:
    """Types what a page shows."""

    def __init__(self, house: House, directory: Path) -> None:
        self._house, self._directory = house, directory

    def types(self, command: Command) -> int:
        """The exit code of a command."""
        words = [self._meant(word) for word in command.words[1:]]
        if words[0] in ASKS:
            words += ["--address", self._house.front, "--timeout", "30"]
        self._bring(words)
        entry = with_flowing_help(app(words))
        return exit_code(
            lambda: entry(args=words, prog_name="winnow", standalone_mode=False), "winnow"
        )

    def runs(self, block: Block) -> None:
        """Runs a program."""
        exec(compile(self._meant(block.text), f"{block.page}:{block.line}", "exec"), {})

    def _meant(self, text: str) -> str:
        """What stands for a place of the reader's own is one here."""
        house = self._house
        for shown, here in (
            ("127.0.0.1:8080", house.front),
            ("127.0.0.1:8081", house.feed),
            ("s3://bucket", f"{self._directory}/bucket"),
            ("FILE", "my.jsonl"),
        ):
            text = text.replace(shown, here)
        return text

    def _bring(self, words: list[str]) -> None:
        """Copies what a command reads and no command before it made."""
        for before, word in zip(["", *words], words, strict=False):
            there = self._house.directory / word
            if before in ("--out", "--store") or "/" in word or not there.exists():
                continue
            if not os.path.lexists(word):
                copy: Any = shutil.copytree if there.is_dir() else shutil.copy
                copy(there, word)


def steps(page: str) -> list[Command | Block]:
    """What of a page is run here."""
    found: list[Command | Block] = []
    for block in blocks(page):
        if block.kind is Kind.PYTHON and page not in PROGRAMS:
            found.append(block)
        elif block.kind is Kind.SHELL:
            ruled = ((each, rule_of(each)) for each in commands(block))
            found += [each for each, rule in ruled if rule is not None and rule.how is How.RUN]
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if steps(page)])
def test_what_a_page_shows_works_as_it_is_written(
    page: str,
    house: House,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(house, tmp_path)
    for step in steps(page):
        if isinstance(step, Block):
            reader.runs(step)
            continue
        code = reader.types(step)
        said = capsys.readouterr()
        assert code == 0, f"{step}: {said.err}"
        assert step.says in said.out
