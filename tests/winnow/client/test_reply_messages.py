"""Replies as plain values and as JSON."""

import json

from scripted_front import full_reply

from winnow.client import AnswerSize, CallKind, CallOutcome, ShardStatus, Source
from winnow.client.reply_messages import reply_of_message
from winnow.v1 import answer_pb2


def test_every_status_of_the_contract_has_its_name() -> None:
    reply = answer_pb2.AnswerResponse()
    known = answer_pb2.ShardCoverage.Status.DESCRIPTOR.values_by_name
    names = [name for name in known if name != "STATUS_UNSPECIFIED"]
    for name in names:
        reply.coverage.shards.add(status=answer_pb2.ShardCoverage.Status.Value(name))
    shards = reply_of_message("?", reply).coverage.shards
    assert [f"STATUS_{part.status.name}" for part in shards] == names


def test_a_status_that_is_not_known_is_a_failure() -> None:
    reply = answer_pb2.AnswerResponse()
    reply.coverage.shards.add(status=99)
    assert reply_of_message("?", reply).coverage.shards[0].status is ShardStatus.FAILED


def test_every_kind_and_outcome_of_a_call_has_its_name_and_unknown_ones_have_none() -> None:
    reply = answer_pb2.AnswerResponse()
    call = answer_pb2.ShardCall
    for kind in call.Kind.values():
        reply.timings.calls.add(kind=kind)
    for outcome in call.Outcome.values():
        reply.timings.calls.add(outcome=outcome)
    reply.timings.calls.add(kind=99, outcome=99)
    calls = reply_of_message("?", reply).timings.calls
    kinds, outcomes = len(call.Kind.values()), len(call.Outcome.values())
    assert [each.kind for each in calls[:kinds]] == [None, *CallKind]
    assert [each.outcome for each in calls[kinds : kinds + outcomes]] == [None, *CallOutcome]
    assert (calls[-1].kind, calls[-1].outcome) == (None, None)


def test_a_scope_that_is_not_known_is_none() -> None:
    reply = answer_pb2.AnswerResponse(read_scope=99)  # type: ignore[arg-type]
    assert reply_of_message("?", reply).read_scope is None


def test_an_answer_has_its_source_and_its_sizes() -> None:
    best, other = reply_of_message("Who?", full_reply()).answers
    assert best.source == Source(
        document="cafés.pdf",
        page=4,
        headings=("Cities", "Łódź"),
        url="https://example.org/cafés.pdf",
        start=120,
        end=170,
    )
    assert (best.sentence_start, best.sentence_end) == (0, len(best.passage.text))
    assert (best.size, best.sentence_confidence) == (AnswerSize.SPAN, 0.875)
    # the other answer is one of an older front
    assert (other.source, other.size, other.sentence_start) == (None, None, None)
    assert other.shown_text == other.text == "Łódź"


def test_the_answer_is_the_shown_text() -> None:
    message = full_reply()
    message.answers[0].shown_text = "The whole sentence."
    assert reply_of_message("Who?", message).answer == "The whole sentence."


def test_as_a_dictionary_it_is_json_with_the_answer_first() -> None:
    message = full_reply()
    message.answers[1].score = float("nan")
    found = reply_of_message("Who?", message).as_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert list(found) == [
        "question", "answer", "has_answer", "answers", "coverage", "timings", "passages_read",
        "passages_asked", "passages_granted", "read_scope", "request_id", "question_truncated",
        "unread_language", "heads",
        "cached", "passages_needed", "max_loss", "index", "generation",
    ]  # fmt: skip
    assert found["answer"] == "Zoe\u0308 Nowak"
    assert found["coverage"]["shards"][1]["status"] == "timeout"
    assert found["read_scope"] == "global"
    assert found["timings"]["read_start_ms"] == 7
    assert found["timings"]["calls"][1] == {
        "shard": 1, "kind": "retrieve", "outcome": "abandoned", "start_ms": 5.0, "ms": 34.0,
        "retrieve_start_ms": 5.5, "retrieve_ms": 0.0, "reads": [],
    }  # fmt: skip
    assert found["answers"][1]["score"] is None
    assert found["answers"][0]["passage"]["metadata"] == {"year": 1923, "tags": ["a", "b"]}
