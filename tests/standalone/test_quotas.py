"""Quotas of tenants, with real models and keys."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Recorder
from tenacious import LONG

from winnow import AsyncIndex, caller
from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.domain.quota import Quotas, StorageUse, TenantQuota
from winnow.errors import OverloadedError, QuotaExceededError
from winnow.keys.gate import Gate, caller_of
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of
from winnow.quotas.file import write_quotas

pytestmark = [pytest.mark.bundle, pytest.mark.timeout(600)]
SCOPES = frozenset({Scope.ASK, Scope.FEED})
KEYS = {
    "acme": Key(name="a", digest=digest_of("a"), scopes=SCOPES, tenant="acme"),
    "bolt": Key(name="b", digest=digest_of("b"), scopes=SCOPES, tenant="bolt"),
    "root": Key(name="root", digest=digest_of("root"), scopes=SCOPES | {Scope.ADMIN}),
}
GATE = Gate(KEYS.values())


async def test_a_tenant_beyond_its_quotas_is_refused_and_others_and_administrators_are_not(
    bundle: Bundle, tmp_path: Path
) -> None:
    """The refusals name the limit, and replies tell what is stored before it is reached."""
    rows = [{"id": "one", "text": "Trains are booked.", "tenant": "acme"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    directory, quotas = tmp_path / "index", tmp_path / "quotas.json"
    plan = BuildPlan(source=tmp_path / "rows.jsonl", target=directory, threads=1, tenants=True)
    await asyncio.to_thread(build_index, plan, bundle, Recorder())
    limits = TenantQuota(passages=2, questions_per_second=0.001)
    write_quotas(quotas, Quotas(by_tenant={"acme": limits}))
    config = tmp_path / "config.toml"
    config.write_text(f'[front]\nquotas = "{quotas}"\n')

    async with AsyncIndex.open(directory, writable=True, config=config) as index:

        async def run(who: str, call: Callable[[], Awaitable[Any]], named: str = "") -> Any:
            async def bound() -> Any:
                caller.bind(caller_of(GATE, KEYS[who], Scope.ASK))
                index._tenant = named
                return await call()

            return await asyncio.create_task(bound())

        def put(identifier: str) -> Callable[[], Awaitable[Any]]:
            return lambda: index.put({"id": identifier, "text": "Cars, too."}, timeout=LONG)

        stored = await run("acme", put("two"))
        assert isinstance(stored.storage, StorageUse)
        assert (stored.storage.used.passages, stored.storage.quota.passages) == (2, 2)
        for who, named in (("acme", ""), ("root", "acme")):
            with pytest.raises(QuotaExceededError, match="acme would exceed its quota of 2 pass"):
                await run(who, put("three"), named)
        assert (await run("bolt", put("three"))).storage is None
        use = await run("root", lambda: index.tenant_usage(timeout=LONG), "acme")
        assert (use.used, use.quota) == (stored.storage.used, stored.storage.quota)
        await run("acme", lambda: index.delete("one", timeout=LONG))
        await run("acme", put("three"))

        def count() -> Awaitable[int]:
            return index.count_passages(timeout=LONG)

        assert await run("acme", count) == 2
        with pytest.raises(OverloadedError, match=r"quota of 0\.001 questions a second"):
            await run("acme", count)
        assert await run("root", count, "acme") == 2
        assert await run("bolt", count) == 1
