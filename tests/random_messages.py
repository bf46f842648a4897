"""Hypothesis strategies for random messages of the services, and for metadata."""

from collections.abc import Callable
from typing import Any

import numpy as np
from google.protobuf.message import Message
from hypothesis import strategies as st
from random_filters import filters

from winnow.bundle.manifest import read_manifest
from winnow.packaged import default_bundle
from winnow.v1 import answer_pb2, head_pb2, passage_pb2, shard_pb2

MARK = "zzhostile"
"""Text in metadata that tests look for in logs and metrics."""
SHARD = ["GetShardInfo", "Retrieve", "Read", "Search"]
"""The methods of a content node."""

uint32 = st.one_of(st.sampled_from([0, 1, 100, 101, 1_000, 1_001]), st.integers(0, 2**32 - 1))
enum = st.one_of(st.integers(0, 4), st.integers(-(2**31), 2**31 - 1))
floats = st.one_of(st.floats(0, 1, width=32), st.floats(width=32))
text = st.one_of(st.just("who"), st.text(max_size=50), st.just("a" * 1_001))
texts = text | st.just("a \U0001f600" * 1_001)
head_ids = st.lists(st.sampled_from(["intent", "names", "unknown"]) | text, max_size=34)
WHERE = ["", "year >= 2010", "lang = 'en' and not year = 1", "missing = 1", "year >", "(" * 999]
where = st.sampled_from(WHERE) | text | filters.map(str)
questions = st.builds(
    answer_pb2.AnswerRequest,
    question=text,
    passages_to_read=st.none() | uint32,
    answers=st.none() | uint32,
    read_scope=enum,
    retriever=enum,
    max_answer_tokens=st.none() | uint32,
    max_loss=st.none() | floats,
    partial_results=enum,
    min_coverage=st.none() | floats,
    min_wait_factor=st.none() | floats,
    max_wait_factor=st.none() | floats,
    heads=st.just([]) | head_ids,
    # a write of a shard that is there would be waited for until the deadline
    after=st.just([])
    | st.lists(st.builds(answer_pb2.Position, shard=st.none() | uint32, sequence=st.just(0))),
    filter=where,
    answer_size=enum,
    min_confidence=st.none() | floats,
)
predictions = st.builds(
    head_pb2.PredictRequest,
    text=st.just("") | texts,
    texts=st.lists(texts, max_size=18),
    head_ids=head_ids,
    ring=st.sampled_from(["", "", "", "fake"]) | text,
)
selected_fields: Any = st.just([]) | st.lists(enum, max_size=5)
positions: Any = st.just([]) | st.lists(
    st.builds(answer_pb2.Position, shard=st.none() | uint32, sequence=st.just(0)), max_size=3
)
page_tokens = st.sampled_from(["", "", "cA", "cGQ", "ZA"]) | text
page_sizes = st.none() | uint32
passage_calls = st.one_of(
    st.builds(
        passage_pb2.GetPassagesRequest,
        ids=st.lists(st.sampled_from(["d#0", "d#1", "x", ""]) | text, max_size=110),
        fields=selected_fields,
        after=positions,
    ),
    st.builds(
        passage_pb2.ListPassagesRequest,
        filter=where,
        page_size=page_sizes,
        page_token=page_tokens,
        fields=selected_fields,
        after=positions,
    ),
    st.builds(passage_pb2.CountPassagesRequest, filter=where, after=positions),
    st.builds(passage_pb2.ListTenantsRequest, page_size=st.none() | uint32, page_token=page_tokens),
    st.builds(passage_pb2.GetTenantUsageRequest, after=positions, tenant=text),
    st.builds(
        passage_pb2.ListDocumentsRequest,
        filter=where,
        page_size=page_sizes,
        page_token=page_tokens,
        after=positions,
    ),
)
BUNDLE = read_manifest(default_bundle())
UNIT = np.eye(1, BUNDLE.encoder.dimension, dtype="<f4")[0]
vectors = st.one_of(
    st.just(UNIT.tobytes()),
    floats.map(lambda value: np.array([value, *UNIT[1:]], dtype="<f4").tobytes()),
    st.lists(floats, max_size=4).map(lambda values: np.array(values, dtype="<f4").tobytes()),
    st.binary(max_size=9),
)


def mostly(kind: Callable[..., Message], valid: dict[str, Any], spoilt: dict[str, Any]) -> Any:
    """Returns messages with at most one invalid field, so that later checks are reached as well."""
    ways = [wrong.map(lambda value, name=name: {name: value}) for name, wrong in spoilt.items()]
    return st.one_of(st.just({}), *ways).map(lambda way: kind(**{**valid, **way}))


valid_question: dict[str, Any] = {
    "text": "who",
    "token_ids": [7, 8],
    "vector": UNIT.tobytes(),
    "bundle_fingerprint": BUNDLE.fingerprint,
}
VALID = shard_pb2.EncodedQuestion(**valid_question)
encoded = mostly(
    shard_pb2.EncodedQuestion,
    valid_question,
    {
        "text": text,
        "token_ids": st.one_of(st.lists(uint32, max_size=5), st.sampled_from([[7] * 600, [2**31]])),
        "vector": vectors,
        "bundle_fingerprint": text,
        "rarities": st.lists(floats, max_size=3),
        "mean_length": floats,
    },
)
hits = mostly(
    shard_pb2.Hit,
    {"row": 1, "passage_id": "a", "distance": 1.0, "hybrid_distance": 1.0},
    {
        "row": st.integers(0, 2) | st.integers(0, 2**64 - 1),
        "passage_id": text,
        "distance": floats,
        "hybrid_distance": floats,
        "words": floats,
        "sequence": st.integers(0, 2**64 - 1),
    },
)
retrieving = {"passages": uint32, "candidates": uint32, "by_words": uint32, "filter": where}
tokens = {"max_answer_tokens": uint32}
reading = {"hits": st.lists(hits, max_size=3), "generation": text} | tokens


def shard_message(method: str) -> Any:
    """Returns requests of a method with at most one invalid field, or one in their question."""
    first: dict[str, Any] = {"question": VALID}
    bad = {"question": encoded}
    if method == "Retrieve":
        return mostly(shard_pb2.RetrieveRequest, first | {"passages": 2}, retrieving | bad)
    if method == "Search":
        valid = first | {"passages": 2, "max_answer_tokens": 10}
        return mostly(shard_pb2.SearchRequest, valid, bad | retrieving | tokens)
    if method == "Read":
        valid = first | {"hits": [shard_pb2.Hit(row=0)], "max_answer_tokens": 10}
        return mostly(shard_pb2.ReadRequest, valid, bad | reading)
    return st.just(shard_pb2.GetShardInfoRequest())


values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=100)
metadata = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["x-winnow-client", "x-request-id", "x-other"]), values),
        st.tuples(st.just("x-winnow-client"), st.just(MARK)),
        st.tuples(st.sampled_from(["x-winnow-client-bin", "x-other-bin"]), st.binary(max_size=50)),
    ),
    max_size=4,
)
