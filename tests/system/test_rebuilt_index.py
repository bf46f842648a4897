"""An index is rebuilt with another bundle and replaced, while questions and writes arrive."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from conftest import PASSAGES, QUESTIONS, Recorder
from named_cluster import NamedCluster, named_cluster
from nats_server import needs_nats
from tenacious import LONG, available, happens
from whole_bundle import WHOLE

from winnow import signals
from winnow.bundle import Bundle
from winnow.client import AsyncClient, PassageFields
from winnow.content_node.copying import cli, commands, replacing, run
from winnow.content_node.indexing.builder import build_empty_index
from winnow.domain.write import Outcome
from winnow.errors import DeadlineExceededError, UnavailableError, WinnowError

_SECONDS = 1_200
"""Limit of the test."""
_IDS = 12
"""Number of passages that are written again and again."""


@dataclass
class Load:
    """Asks and writes by the alias `docs`, in turn, and records what was acknowledged."""

    cluster: NamedCluster
    stored: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    """The text and the version of each acknowledged write, by id; no text for a deletion."""
    failed: list[WinnowError] = field(default_factory=list)
    """Errors of questions."""
    asked: dict[int, set[str]] = field(default_factory=dict)
    """The indexes that answered, by the generation of the alias."""
    writes: int = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def goes_on(self) -> None:
        """Waits until three more writes have been acknowledged."""
        enough = self.writes + 3
        await happens(lambda: self.writes >= enough)

    async def check(self, index: str) -> None:
        """Checks that an index has exactly what was acknowledged."""
        texts = {name: text for name, (text, _) in self.stored.items() if text is not None}
        async with AsyncClient(self.cluster.feed, index=index) as client:
            deadline, found, count = time.monotonic() + LONG, dict[str, str](), 0
            # a replica may be a moment behind its journal
            while (found, count) != (texts, len(texts) + len(PASSAGES)):
                assert time.monotonic() < deadline, (found, texts, count)
                passages = await client.get_passages(sorted(self.stored), timeout=LONG)
                found = {name: each.text for name, each in passages.items()}
                count = await client.count_passages(timeout=LONG)

    async def _run(self) -> None:
        async with AsyncClient(self.cluster.feed, index="docs") as client:
            while True:
                await self._write(client)
                await self._ask()

    async def _write(self, client: AsyncClient) -> None:
        """Writes until the write is acknowledged, as `winnow feed` does."""
        number = self.writes + 1
        name, deletes = f"w{number % _IDS}", number % 5 == 0
        passage: PassageFields = {"id": name, "text": f"The text {number}.", "version": number}
        while True:
            try:
                if deletes:
                    await client.delete(name, version=number, timeout=5.0)
                else:
                    await client.put([passage], timeout=5.0)
            except (UnavailableError, DeadlineExceededError):
                continue
            self.stored[name] = (None if deletes else f"The text {number}.", number)
            self.writes = number
            return

    async def _ask(self) -> None:
        try:
            reply = await self.cluster.ask(QUESTIONS[0][0], "docs")
        except WinnowError as error:
            self.failed.append(error)
            return
        assert reply.answers[0].text == QUESTIONS[0][1]
        self.asked.setdefault(reply.generation or 0, set()).add(reply.index or "")


class KilledError(BaseException):
    """Ends a paused command at the end of a test."""


class Command(threading.Thread):
    """A command that is paused at a fault point: for good, as by kill -9, or until it is resumed."""

    def __init__(self, work: Callable[[], None], pause_at: str = "") -> None:
        super().__init__(daemon=True)
        self._work, self._pause_at = work, pause_at
        self.is_paused, self._is_resumed = threading.Event(), threading.Event()
        self._is_killed = False
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 (the test compares it)
            self.error = error

    def reach(self, point: str) -> None:
        """Pauses the thread at its point."""
        if point == self._pause_at and not self._is_resumed.is_set():
            self.is_paused.set()
            self._is_resumed.wait()
            if self._is_killed:
                raise KilledError

    async def ends(self) -> None:
        """Lets a paused command go on, and waits for its end."""
        self._is_resumed.set()
        await happens(lambda: not self.is_alive())

    async def kill(self) -> None:
        self._is_killed = True
        await self.ends()


def _reach(point: str) -> None:
    current = threading.current_thread()
    if isinstance(current, Command):
        current.reach(point)


@pytest.mark.bundle
@pytest.mark.timeout(_SECONDS)
@pytest.mark.parametrize("nodes", ["a", pytest.param("ab", marks=needs_nats)])
async def test_a_rebuild_that_is_cut_off_at_each_step_loses_no_write_and_fails_no_question(
    nodes: str,
    indexes: dict[int, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Commands that go on much later change nothing. The index that was replaced has all later
    writes, too, when the alias is switched back. Two nodes have replicas that follow a journal.
    """
    journal = request.getfixturevalue("nats_server").url if len(nodes) > 1 else ""
    for module in (commands, replacing, run):
        monkeypatch.setattr(module, "reach", _reach)
    monkeypatch.setattr(signals, "run", asyncio.run)  # the commands run in threads
    async with named_cluster(
        tmp_path, nodes, holders=nodes, journal=journal, seconds=_SECONDS, old=indexes[2]
    ) as cluster:
        cluster.change(lambda before: before.with_alias("docs", "old"))
        await available(partial(_ask, cluster), LONG)
        load, paused = Load(cluster), dict[str, Command]()
        url = str(tmp_path / "snapshots")
        rebuild = partial(cli.rebuild, "docs", bundle=WHOLE, snapshot=url, new="new", shards=3)

        async def cut_off(work: Callable[[], None], *points: str) -> None:
            for point in points:
                assert _target(cluster) == "old"
                paused[point] = Command(work, f"copy.{point}")
                await happens(paused[point].is_paused.is_set)

        async def done(work: Callable[[], None]) -> None:
            command = Command(work)
            await command.ends()
            assert command.error is None

        async with load.running():
            await load.goes_on()
            begin = partial(rebuild, catalog=cluster.path, threads=1)
            await cut_off(begin, "created", "begun", "positioned", "stored", "filled", "followed")
            await done(begin)
            await load.goes_on()
            switch = partial(cli.alias, "docs", "new", catalog=cluster.path, threads=1)
            await cut_off(switch, "held", "closed", "complete", "replaced")
            assert _target(cluster) == "new"
            await done(switch)
            await load.goes_on()
            for point in ("stored", "followed", "complete"):
                await paused.pop(point).ends()
            await load.goes_on()
        assert load.failed == []
        assert all(len(names) == 1 for names in load.asked.values())
        assert set.union(*load.asked.values()) == {"old", "new"}
        await load.check("new")
        for command in paused.values():
            await command.kill()
        async with load.running():
            await load.goes_on()
            await done(partial(cli.alias, "docs", "old", catalog=cluster.path, threads=1))
            await load.goes_on()
        assert load.failed == []
        await load.check("old")
        async with AsyncClient(cluster.feed, index="docs") as client:
            old = [{"id": name, "text": "An old text.", "version": 1} for name in load.stored]
            results = await client.put(old, timeout=LONG)  # type: ignore[arg-type]
            assert {each.outcome for each in results} == {Outcome.OUTDATED}


@pytest.mark.bundle
@pytest.mark.timeout(_SECONDS)
async def test_a_rebuilt_index_keeps_the_passages_of_its_tenants_apart(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tenants have a passage with the same id. One of them writes it again after the copy."""
    monkeypatch.setattr(signals, "run", asyncio.run)  # the commands run in threads
    build_empty_index(tmp_path / "index", bundle, 2, Recorder(), tenants=True)
    async with named_cluster(tmp_path, seconds=_SECONDS, old=tmp_path / "index") as cluster:
        cluster.change(lambda before: before.with_alias("docs", "old"))
        clients = {
            each: AsyncClient(cluster.feed, index="docs", tenant=each) for each in ("acme", "other")
        }

        async def feed(tenant: str, text: str, version: int) -> None:
            passage: PassageFields = {"id": "p", "text": text, "version": version}
            await available(
                lambda: _translated(lambda: clients[tenant].put([passage], timeout=LONG)), LONG
            )

        for tenant in clients:
            await feed(tenant, f"The text of {tenant}.", 1)
        url, shared = str(tmp_path / "snapshots"), {"catalog": cluster.path, "threads": 1}
        rebuild = partial(cli.rebuild, "docs", bundle=WHOLE, snapshot=url, new="new", **shared)
        await asyncio.to_thread(rebuild)
        await feed("acme", "A later text.", 2)
        await asyncio.to_thread(partial(cli.alias, "docs", "new", **shared))
        assert _target(cluster) == "new"
        for tenant, text in (("acme", "A later text."), ("other", "The text of other.")):
            async with clients[tenant] as client:
                found = await client.get_passages(["p"], timeout=LONG)
                assert found["p"].text == text
                assert await client.count_passages(timeout=LONG) == 1


async def _ask(cluster: NamedCluster) -> None:
    await _translated(lambda: cluster.ask(QUESTIONS[0][0], "docs"))


async def _translated(work: Callable[[], Awaitable[object]]) -> None:
    """Raises UnavailableError while the front does not know the alias or the index yet."""
    try:
        await work()
    except WinnowError as error:
        raise UnavailableError("not yet") from error


def _target(cluster: NamedCluster) -> str:
    catalog = cluster.catalog.read()
    assert catalog is not None
    return catalog.aliases["docs"].index
