"""Tenants of a cluster of processes, by all its doors: HTTP, agents, commands and gRPC."""

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Recorder
from in_process import EndedCommand, InProcess
from mcp_clients import http_agent, text_of
from tenacious import LONG, until

from winnow.bundle import Bundle
from winnow.cli.keys.changing import add_key
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client import Client, Credentials, PassageFields
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.errors import InvalidRequestError
from winnow.keys.key import Scope
from winnow.packaged import default_bundle

pytestmark = pytest.mark.bundle
ASKED = "Who won the prize?"
USERS = (Scope.ASK, Scope.FEED)


def row(tenant: str, number: int) -> PassageFields:
    """Returns a passage whose text names its tenant."""
    return {
        "id": f"p{number}",
        "title": "Prize",
        "text": f"The prize number {number} was won by Marta {tenant.title()}heim.",
        "metadata": {"document": f"{tenant}.md"},
    }


@dataclass(frozen=True)
class Shared:
    """A cluster with the tenants alpha and beta, and the tokens of its keys."""

    cluster: LocalCluster
    index: Path
    tokens: dict[str, str]

    def client(self, who: str, *, feeds: bool = False, tenant: str = "") -> Client:
        address = self.cluster.feed if feeds else self.cluster.address
        return Client(address, credentials=Credentials(token=self.tokens[who]), tenant=tenant)

    def http(self, who: str, path: str, *, named: str = "", **values: Any) -> httpx.Response:
        """Calls a path with a key: a POST if there are `values`."""
        headers = {"authorization": f"Bearer {self.tokens[who]}"}
        if named:
            headers["x-winnow-tenant"] = named
        url = f"http://{self.cluster.http}{path}"
        if values:
            return httpx.post(url, headers=headers, json=values, timeout=LONG)
        return httpx.get(url, headers=headers, timeout=LONG)


@pytest.fixture(scope="module")
def shared(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    root = tmp_path_factory.mktemp("tenants")
    rows = [
        {**row(each, number), "tenant": each} for each in ("alpha", "beta") for number in (1, 2)
    ]
    (root / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    index, keys = root / "index", root / "keys.json"
    build_index(
        BuildPlan(source=root / "rows.jsonl", target=index, shards=2, threads=1, tenants=True),
        bundle,
        Recorder(),
    )
    tokens = {each: add_key(keys, each, USERS, None, tenant=each) for each in ("alpha", "beta")}
    tokens["plain"] = add_key(keys, "plain", USERS, None)
    tokens["root"] = add_key(keys, "root", [*USERS, Scope.ADMIN], None)
    plan = LocalPlan(
        index,
        default_bundle(),
        "127.0.0.1:0",
        nodes=2,
        front=(f"--keys={keys}", "--http-feed"),
        node=("--merge-after=1",),
        feed_listen="127.0.0.1:0",
        http_listen="127.0.0.1:0",
        reader_threads=1,
        credentials=Credentials(token=tokens["root"]),
    )
    with LocalCluster(plan) as cluster:
        cluster.start()
        asyncio.run(cluster.wait_ready())
        yield Shared(cluster, index, tokens)


@pytest.fixture
def winnow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    return InProcess(capsys, monkeypatch)


def test_http_gives_a_key_only_passages_of_its_tenant(shared: Shared) -> None:
    """Also if a header or a field names another tenant."""
    for path in ("/v1/passages", "/v1/documents", "/v1/passages:export"):
        reply = shared.http("alpha", path)
        assert reply.status_code == 200
        assert "alpha" in reply.text.lower()
        assert "beta" not in reply.text.lower()
        assert shared.http("alpha", path, named="beta").status_code == 403
        assert shared.http("alpha", f"{path}?tenant=beta").status_code == 403
        assert shared.http("plain", path, named="alpha").status_code == 403
        assert "Betaheim" in shared.http("root", "/v1/passages", named="beta").text
    answer = shared.http("alpha", "/v1/answer", question=ASKED)
    assert "Alphaheim" in answer.text
    assert "beta" not in answer.text.lower()
    assert shared.http("alpha", "/v1/answer", question=ASKED, tenant="beta").status_code == 403


def test_only_administrators_list_and_delete_tenants(shared: Shared) -> None:
    """A tenant may see what it stores itself."""
    listed = shared.http("root", "/v1/tenants").json()["tenants"]
    assert listed == [{"name": each, "passages": "2"} for each in ("alpha", "beta")]
    used = shared.http("alpha", "/v1/tenants:usage").json()
    texts = [row("alpha", number) for number in (1, 2)]
    size = sum(len(each["title"] + each["text"] + '{"document": "alpha.md"}') for each in texts)
    assert (used["passages"], used["bytes"]) == ("2", str(size))
    assert shared.http("alpha", "/v1/tenants:usage?tenant=beta").status_code == 403
    for who in ("alpha", "plain"):
        assert shared.http(who, "/v1/tenants").status_code == 403
        assert shared.http(who, "/v1/tenants:delete", tenant="alpha").status_code == 403
    with shared.client("root", feeds=True) as client, pytest.raises(InvalidRequestError):
        client.delete_tenant("")


async def test_an_agent_finds_only_passages_of_the_tenant_of_its_key(shared: Shared) -> None:
    url = f"http://{shared.cluster.http}/mcp"
    own = {"authorization": f"Bearer {shared.tokens['alpha']}"}
    async with http_agent(url, own) as agent:
        found = text_of(await agent.call_tool("search", {"query": ASKED}))
        assert "alpha" in found.lower()
        assert "beta" not in found.lower()
        fetched = text_of(await agent.call_tool("fetch", {"id": "beta.md"}))
        assert "Betaheim" not in fetched
    async with http_agent(url, {**own, "x-winnow-tenant": "beta"}) as agent:
        refused = await agent.call_tool("search", {"query": ASKED})
        assert refused.is_error
        assert "Betaheim" not in text_of(refused)


def run(winnow: InProcess, shared: Shared, who: str, *words: str) -> EndedCommand:
    """Runs a command of the command line with a key."""
    feeds = words[:2] in (("tenants", "delete"), ("passages", "delete")) or words[0] == "feed"
    address = shared.cluster.feed if feeds else shared.cluster.address
    return winnow(*words, "--address", address, WINNOW_TOKEN=shared.tokens[who])


def test_a_command_with_the_key_of_a_tenant_is_refused_for_others(
    shared: Shared, winnow: InProcess
) -> None:
    commands: Sequence[tuple[str, ...]] = (
        ("ask", ASKED, "--tenant", "beta"),
        ("passages", "list", "--tenant", "beta"),
        ("passages", "export", "--tenant", "beta"),
        ("passages", "delete", "--document", "beta.md", "--tenant", "beta"),
        ("tenants", "list"),
        ("tenants", "usage", "beta"),
        ("tenants", "export", "beta"),
        ("tenants", "delete", "beta"),
        ("tenants", "delete", "alpha"),
    )
    for words in commands:
        ended = run(winnow, shared, "alpha", *words)
        assert ended.returncode != 0, words
        assert "Betaheim" not in ended.stdout + ended.stderr
    assert json.loads(run(winnow, shared, "root", "tenants", "list", "--json").stdout) == [
        {"name": each, "passages": 2} for each in ("alpha", "beta")
    ]


def test_a_tenant_is_exported_deleted_everywhere_and_fed_again(
    shared: Shared, winnow: InProcess, tmp_path: Path
) -> None:
    """A third tenant: no file of the nodes has its texts after the next merge."""
    rows, exported = tmp_path / "gamma.jsonl", tmp_path / "exported.jsonl"
    rows.write_text("".join(json.dumps(row("gamma", number)) + "\n" for number in range(20)))
    fed = run(winnow, shared, "root", "feed", str(rows), "--tenant", "gamma")
    assert fed.returncode == 0, fed.stderr
    assert run(winnow, shared, "root", "tenants", "export", "gamma", str(exported)).returncode == 0
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    assert {each["tenant"] for each in lines} == {"gamma"}
    counted = run(winnow, shared, "root", "tenants", "delete", "gamma", "--dry-run")
    assert counted.stdout == "20 passages would be deleted\n"
    until(lambda: bool(holding(shared.index, "Gammaheim")))  # a merge may move it just now
    deleted = run(winnow, shared, "root", "tenants", "delete", "gamma")
    assert deleted.stdout == "20 passages were deleted\n", deleted.stderr
    with shared.client("root", tenant="gamma") as client:
        assert client.count_passages() == 0
        assert not client.search(ASKED).passages
        assert "gamma" not in [each.name for each in client.list_tenants()]
    until(lambda: holding(shared.index, "Gammaheim") == [])
    until(lambda: bool(holding(shared.index, "Alphaheim")))
    verified = winnow("index", "verify", str(shared.index))
    assert verified.returncode == 0, verified.stdout + verified.stderr
    again = run(winnow, shared, "root", "feed", str(exported), "--tenant", "gamma")
    assert again.returncode == 0, again.stderr
    used = run(winnow, shared, "root", "tenants", "usage", "gamma", "--json")
    assert json.loads(used.stdout)["passages"] == 20


def holding(index: Path, text: str) -> list[Path]:
    """The files of an index that have a text."""
    found = []
    for directory, _, names in os.walk(index):  # which skips directories that a merge removes
        for path in (Path(directory, name) for name in names):
            try:
                if text.encode() in path.read_bytes():
                    found.append(path)
            except FileNotFoundError:  # a merge has just removed it
                continue
    return found
