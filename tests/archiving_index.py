"""An index of two tenants to archive, and what its tests share."""

import json
from pathlib import Path
from typing import Any

from tenacious import happens

from winnow.bundle import Bundle
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.inference.encoder import open_question_encoder
from winnow.text.tokenizer import Tokenizer

DEPTH = RetrievalDepth(passages=3, candidates=10, by_words=10)


def built_index(
    bundle: Bundle, tmp_path: Path, recorder: Any, *, shards: int = 1, tenants: bool = True
) -> Path:
    """Builds an index with three passages: two of tenant acme, one of tenant beta."""
    rows = [
        {"id": f"p{n}", "title": "Prizes", "text": f"{who} won prize {n}.", "tenant": who}
        for who, count in (("acme", 2), ("beta", 1))
        for n in range(count)
    ]
    if not tenants:
        for row in rows:
            row["id"] += row.pop("tenant")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = BuildPlan(
        source=tmp_path / "rows.jsonl",
        target=tmp_path / "index",
        shards=shards,
        threads=1,
        tenants=tenants,
    )
    build_index(plan, bundle, recorder)
    return tmp_path / "index"


def question_of(tenant: str, bundle: Bundle) -> EncodedQuestion:
    tokenizer = Tokenizer(bundle.tokenizer)
    ids = tokenizer.tokenise("Who won prize 1?").ids
    return EncodedQuestion(
        text="Who won prize 1?",
        token_ids=ids,
        vector=open_question_encoder(bundle, tokenizer.special).question(ids),
        bundle_fingerprint=bundle.manifest.fingerprint,
        tenant=tenant,
    )


async def archive_now(shard: RunningShard) -> None:
    """Archives a shard once no change of it is under way."""
    await happens(shard._may_be_archived)
    assert shard._archive is not None
    assert await shard._archive.archive()
