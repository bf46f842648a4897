"""Tenants of an index, with real models and keys: nobody sees anything of another tenant."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Recorder
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow import AsyncIndex, caller
from winnow.bundle import Bundle
from winnow.client import PassageFields
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.stage_source import BadRowsError
from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.deadline import Deadline
from winnow.domain.listing import CountRequest
from winnow.domain.question import EncodedQuestion, RetrievalDepth, Retriever
from winnow.domain.shard import shard_of_tenant
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, PermissionDeniedError, WinnowError
from winnow.filtering import parse
from winnow.index_directory import shard_directories
from winnow.keys.gate import Gate, caller_of
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of
from winnow.policy.pace import Pace
from winnow.reading import open_reader
from winnow.reading.pool import ReaderPool
from winnow.text.tokenizer import Tokenizer

pytestmark = [pytest.mark.bundle, pytest.mark.timeout(900)]
TENANTS = ("alpha", "beta", "gamma")
IDS = ("prize", "tour", "a#0", "a#1", "é")
ASKED = "Who won the prize?"


def passage(tenant: str, identifier: str, number: int) -> PassageFields:
    """Returns a passage whose text tells its tenant."""
    return {
        "id": identifier,
        "title": f"Prize of {tenant}",
        "text": f"The prize number {number} was won by Marta {tenant.title()}heim.",
        "metadata": {"number": number, "document": f"{identifier}.md", f"of {tenant}": True},
    }


def key(name: str, *scopes: Scope, tenant: str = "") -> Key:
    return Key(name=name, digest=digest_of(name), scopes=frozenset(scopes), tenant=tenant)


KEYS = {
    **{each: key(each, Scope.ASK, Scope.FEED, tenant=each) for each in TENANTS},
    "plain": key("plain", Scope.ASK, Scope.FEED),
    "root": key("root", Scope.ASK, Scope.FEED, Scope.ADMIN),
}
GATE = Gate(KEYS.values())


@pytest.fixture(scope="module")
def built(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two shards with tenants, each with one passage."""
    root = tmp_path_factory.mktemp("tenants")
    rows = [{**passage(each, "prize", 1), "tenant": each} for each in TENANTS]
    (root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = BuildPlan(
        source=root / "rows.jsonl", target=root / "index", shards=2, threads=1, tenants=True
    )
    build_index(plan, bundle, Recorder())
    return root / "index"


@dataclass
class Shared:
    """An open index, and what each tenant should have in it."""

    index: AsyncIndex
    runner: asyncio.Runner
    model: dict[str, dict[str, PassageFields]]
    positions: dict[str, Position] = field(default_factory=dict)
    """The last position that each tenant got."""
    requests: int = 0

    def run(self, work: Callable[[AsyncIndex], Awaitable[Any]], who: str, named: str = "") -> Any:
        """Runs a call with the key `who`, which names the tenant `named`.

        Checks that neither the reply nor an error tells anything of another tenant.
        """
        self.requests += 1
        tenant = named or who

        async def call() -> Any:
            caller.bind(caller_of(GATE, KEYS[who], Scope.ASK))
            self.index._tenant = named
            return await work(self.index)

        try:
            reply = self.runner.run(call())
        except WinnowError as error:
            self._check_silence(f"{error!r} {error.public}", tenant)
            raise
        self._check_silence(repr(reply), tenant)
        return reply

    @staticmethod
    def _check_silence(text: str, tenant: str) -> None:
        others = [each for each in TENANTS if each != tenant and each in text.lower()]
        assert not others, f"{tenant} sees {others}: {text}"
        assert "\\x1f" not in text

    def matching(self, tenant: str, where: str) -> list[str]:
        """The ids that a filter should find."""
        accepts = parse(where).matches if where else lambda _: True
        return sorted(
            name for name, each in self.model[tenant].items() if accepts(each["metadata"])
        )


@pytest.fixture(scope="module")
def shared(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    directory = shutil.copytree(built, tmp_path_factory.mktemp("shared") / "index")
    model = {each: {"prize": passage(each, "prize", 1)} for each in TENANTS}
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        index = runner.run(stack.enter_async_context(AsyncIndex.open(directory, writable=True)))
        yield Shared(index, runner, model)
        runner.run(stack.aclose())


Call = Callable[[Shared, str, "Drawn"], None]


@dataclass(frozen=True)
class Drawn:
    """The random values of a request."""

    ids: Sequence[str]
    number: int
    where: str
    other: str


def put(shared: Shared, tenant: str, drawn: Drawn) -> None:
    new = [passage(tenant, each, drawn.number) for each in drawn.ids]
    results = shared.run(lambda index: index.put(new, timeout=LONG), tenant)
    assert [each.id for each in results] == list(drawn.ids)
    shared.model[tenant] |= {each["id"]: each for each in new}
    shared.positions[tenant] = results[-1].position


def delete(shared: Shared, tenant: str, drawn: Drawn) -> None:
    results = shared.run(lambda index: index.delete(drawn.ids, timeout=LONG), tenant)
    for each in drawn.ids:
        shared.model[tenant].pop(each, None)
    shared.positions[tenant] = results[-1].position


def delete_where(shared: Shared, tenant: str, drawn: Drawn) -> None:
    where = f"number = {drawn.number}"
    gone = shared.matching(tenant, where)
    done = shared.run(lambda index: index.delete_where(where, timeout=LONG), tenant)
    assert (done.deleted, done.complete) == (len(gone), True)
    for each in gone:
        del shared.model[tenant][each]


async def listed(index: AsyncIndex, where: str, after: Sequence[Position] = ()) -> Any:
    pages = index.list_passages(where=where or None, after=after, timeout=LONG)
    return [each async for each in pages]


def list_all(shared: Shared, tenant: str, drawn: Drawn) -> None:
    found = shared.run(lambda index: listed(index, drawn.where), tenant)
    assert [each.id for each in found] == shared.matching(tenant, drawn.where)
    assert all(each.text == shared.model[tenant][each.id]["text"] for each in found)


def count(shared: Shared, tenant: str, drawn: Drawn) -> None:
    found = shared.run(lambda index: index.count_passages(drawn.where, timeout=LONG), tenant)
    assert found == len(shared.matching(tenant, drawn.where))


def get(shared: Shared, tenant: str, drawn: Drawn) -> None:
    found = shared.run(lambda index: index.get_passages(drawn.ids, timeout=LONG), tenant)
    assert found.keys() == shared.model[tenant].keys() & set(drawn.ids)


async def documents_of(index: AsyncIndex) -> Any:
    return [each async for each in index.list_documents(timeout=LONG)]


def documents(shared: Shared, tenant: str, _drawn: Drawn) -> None:
    found = shared.run(documents_of, tenant)
    assert [each.name for each in found] == sorted(f"{each}.md" for each in shared.model[tenant])
    assert all(each.passages == 1 for each in found)


def search(shared: Shared, tenant: str, drawn: Drawn) -> None:
    """Exact search finds every passage of the tenant, in the order of their distances."""
    found = shared.run(
        lambda index: index.search(
            ASKED, where=drawn.where, passages=100, retriever=Retriever.DENSE, timeout=LONG
        ),
        tenant,
    )
    assert sorted(each.passage.id for each in found.passages) == shared.matching(
        tenant, drawn.where
    )
    assert found.coverage.complete
    assert found.coverage.known == len(shared.model[tenant])


def ask(shared: Shared, tenant: str, drawn: Drawn) -> None:
    reply = shared.run(
        lambda index: index.ask(ASKED, where=drawn.where, passages_to_read=1, timeout=LONG), tenant
    )
    names = {each.passage.id for each in reply.answers}
    assert names <= set(shared.matching(tenant, drawn.where))
    assert reply.coverage.known == len(shared.model[tenant])
    assert all(each.sequence is None for each in reply.coverage.shards)


def merge(shared: Shared, _tenant: str, drawn: Drawn) -> None:
    """Later requests see merged passages, which are the same."""
    if drawn.number == 1 and len(drawn.ids) == 3:  # a merge takes seconds
        shared.runner.run(shared.index.merge())


def name_another(shared: Shared, tenant: str, drawn: Drawn) -> None:
    other = drawn.other
    works: list[Callable[[AsyncIndex], Awaitable[Any]]] = [
        lambda index: index.ask(ASKED, timeout=LONG),
        lambda index: listed(index, drawn.where),
        lambda index: index.put(passage(tenant, "stolen", 1), timeout=LONG),
        lambda index: index.delete(drawn.ids, timeout=LONG),
    ]
    work = works[drawn.number % len(works)]
    with pytest.raises(PermissionDeniedError, match="of another tenant"):
        shared.run(work, tenant, named=other if other != tenant else "unknown")
    with pytest.raises(PermissionDeniedError, match="of no tenant"):
        shared.run(work, "plain", named=tenant)


def use_position(shared: Shared, tenant: str, drawn: Drawn) -> None:
    """A position is of use only to the tenant that got it."""
    if (own := shared.positions.get(tenant)) is not None:
        found = shared.run(lambda index: listed(index, "", [own]), tenant)
        assert [each.id for each in found] == shared.matching(tenant, "")
    foreign = shared.positions.get(drawn.other)
    if drawn.other != tenant and foreign is not None:
        with pytest.raises(InvalidRequestError, match="not of this index and tenant"):
            shared.run(lambda index: listed(index, "", [foreign]), tenant)


def err(shared: Shared, tenant: str, drawn: Drawn) -> None:
    """Errors of a filter and of a passage name nothing of others."""
    with pytest.raises(InvalidRequestError, match="filter"):
        shared.run(lambda index: index.count_passages("number is 1", timeout=LONG), tenant)
    nameless = passage(tenant, "", drawn.number)
    with pytest.raises(InvalidRequestError, match=r"passages\[0\]"):
        shared.run(lambda index: index.put(nameless, timeout=LONG), tenant)


def administer(shared: Shared, tenant: str, drawn: Drawn) -> None:
    """An administrator acts for the tenant that it names."""
    found = shared.run(lambda index: listed(index, drawn.where), "root", named=tenant)
    assert [each.id for each in found] == shared.matching(tenant, drawn.where)
    with pytest.raises(InvalidRequestError, match="is missing"):
        shared.run(lambda index: listed(index, ""), "root")


CALLS: Mapping[str, Call] = {
    each.__name__: each
    for each in (
        *(put, delete, delete_where, list_all, count, get, documents, search, ask),
        *(merge, name_another, use_position, err, administer),
    )
}
FILTERS = ("", "number >= 2", 'exists "of alpha"', "not number = 1", "unknown = 1", "exists number")
drawn_values = st.builds(
    Drawn,
    ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True),
    number=st.integers(1, 4),
    where=st.sampled_from(FILTERS),
    other=st.sampled_from(TENANTS),
)
requests = st.tuples(st.sampled_from(sorted(CALLS)), st.sampled_from(TENANTS), drawn_values)


@pytest.mark.hypothesis
@settings(
    max_examples=12,
    # the index keeps what earlier examples wrote, so a shorter history is another one
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(requests, min_size=5, max_size=15))
def test_each_tenant_sees_its_own_passages_and_nothing_of_others(
    shared: Shared, history: Sequence[tuple[str, str, Drawn]]
) -> None:
    """Random requests with keys of several tenants, against a dictionary of each tenant."""
    for name, tenant, drawn in history:
        CALLS[name](shared, tenant, drawn)


def test_positions_do_not_tell_whether_others_write(shared: Shared) -> None:
    """A position of a write that changes nothing would otherwise be the same until others write."""
    given = passage("alpha", "prize", 1)
    works: list[Callable[[AsyncIndex], Awaitable[Any]]] = [
        lambda index: index.put(given, timeout=LONG),
        lambda index: index.put(given, timeout=LONG),
        lambda index: index.put(given, timeout=LONG),
        lambda index: index.delete("none", timeout=LONG),
        lambda index: index.delete("none", timeout=LONG),
    ]
    positions = [shared.run(work, "alpha")[0].position for work in works]
    shared.model["alpha"]["prize"] = given
    assert len(set(positions)) == len(works)


def test_an_index_that_is_copied_from_another_keeps_its_tenants(
    built: Path, bundle: Bundle, tmp_path: Path
) -> None:
    plan = BuildPlan(source=built, target=tmp_path / "copy", shards=1, threads=1)
    assert build_index(plan, bundle, Recorder()).tenants
    (directory,) = shard_directories(tmp_path / "copy")
    view = view_of(open_shard(directory, 64))
    assert view.manifest.has_tenants
    counts = {each: view_of_tenant(view, each).passages for each in (*TENANTS, "unknown")}
    assert counts == {"alpha": 1, "beta": 1, "gamma": 1, "unknown": 0}


def test_rows_without_a_tenant_are_bad_rows_of_an_index_with_tenants(
    bundle: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "text": "b"}\n')
    progress = Recorder()
    plan = BuildPlan(
        source=tmp_path / "rows.jsonl", target=tmp_path / "index", threads=1, tenants=True
    )
    with pytest.raises(BadRowsError):
        build_index(plan, bundle, progress)
    assert [each.reason for each in progress.bad_rows] == ["tenant is missing"]


async def test_a_node_refuses_what_is_of_no_tenant_or_of_another_one(
    built: Path, bundle: Bundle
) -> None:
    """It does not rely on the front, whose tenants it does not know."""
    metrics = NodeMetrics(CollectorRegistry())
    pool = ReaderPool(1, 1, metrics)
    shard = open_shard(shard_directories(built)[shard_of_tenant("alpha", 2)], 64)
    reader = open_reader(bundle, Tokenizer(bundle.tokenizer).special)
    pace = Pace(2.0, lambda: 0.0)
    searcher = LocalSearcher(view_of(shard), reader, bundle, pool, pace=pace, metrics=metrics)
    vector = np.ones(shard.manifest.dimension, np.float32) / shard.manifest.dimension**0.5

    def asked(tenant: str) -> EncodedQuestion:
        return EncodedQuestion(
            text="q",
            token_ids=(2040,),
            vector=vector,
            bundle_fingerprint=bundle.manifest.fingerprint,
            tenant=tenant,
        )

    depth, soon = RetrievalDepth(passages=3), Deadline.after(LONG)
    try:
        found = await searcher.retrieve(asked("alpha"), depth, soon)
        assert [each.passage_id for each in found.hits] == ["prize"]
        assert found.passages == 1
        with pytest.raises(PermissionDeniedError, match="names none"):
            await searcher.retrieve(asked(""), depth, soon)
        with pytest.raises(PermissionDeniedError, match="is not of the tenant"):
            await searcher.read(asked("unknown"), found.hits, soon)
        with pytest.raises(PermissionDeniedError, match="names none"):
            await searcher.passages.fetch(CountRequest(), soon)
    finally:
        pool.close()
