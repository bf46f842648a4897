"""Names of enum values in requests."""

import json
from typing import Any

import pytest

from winnow.errors import InvalidRequestError
from winnow.stateless.http.json_fields import short_names, with_full_names
from winnow.stateless.http.json_text import parse_message
from winnow.v1 import answer_pb2, cluster_pb2, encoder_pb2, feed_pb2, http_pb2

FIELDS = [
    field for field in answer_pb2.AnswerRequest.DESCRIPTOR.fields if field.enum_type is not None
]


def asked(**fields: Any) -> answer_pb2.AnswerRequest:
    return parse_message(
        answer_pb2.AnswerRequest, json.dumps({"question": "Who?", **fields}).encode()
    )


@pytest.mark.parametrize("name", ["hybrid", "HYBRID", "Hybrid", "RETRIEVER_HYBRID"])
def test_a_choice_may_be_short_and_in_any_case(name: str) -> None:
    assert asked(retriever=name).retriever == answer_pb2.RETRIEVER_HYBRID


@pytest.mark.parametrize("number", [3, 3.0, "3"])
def test_a_choice_may_be_its_number(number: object) -> None:
    assert asked(retriever=number).retriever == answer_pb2.RETRIEVER_HYBRID


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_choice_of_a_question_has_short_names(field: Any) -> None:
    for number, name in enumerate(short_names(field.enum_type), start=1):
        for written in (name, name.lower(), field.enum_type.values_by_number[number].name):
            for key in (field.name, field.json_name):
                assert getattr(asked(**{key: written}), field.name) == number


def test_a_choice_of_one_of_many_questions_may_be_short() -> None:
    data = b'{"requests": [{"question": "Who?", "read_scope": "per_shard"}]}'
    (request,) = parse_message(http_pb2.AnswersRequest, data).requests
    assert request.read_scope == answer_pb2.READ_SCOPE_PER_SHARD


@pytest.mark.parametrize("value", ["both", "", "READ_SCOPE_GLOBAL", ["hybrid"], {}])
def test_what_is_no_name_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        asked(retriever=value)
    assert caught.value.violations[0].field == "retriever"


def test_lists_in_lists_are_refused_however_deep_they_are() -> None:
    data = b'{"retriever": ' + b"[" * 900 + b"]" * 900 + b"}"
    with pytest.raises(InvalidRequestError):
        parse_message(answer_pb2.AnswerRequest, data)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_an_error_lists_the_short_names(field: Any) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        asked(**{field.name: "neither"})
    (violation,) = caught.value.violations
    assert (
        violation.description == f"'neither' is none of {', '.join(short_names(field.enum_type))}"
    )


def test_short_names_are_those_of_the_protos_without_the_name_of_the_enum() -> None:
    assert short_names(answer_pb2.ReadScope.DESCRIPTOR) == ["GLOBAL", "PER_SHARD"]
    assert short_names(encoder_pb2.StatesFormat.DESCRIPTOR) == ["FLOAT16", "INT8"]
    states = cluster_pb2.DESCRIPTOR.message_types_by_name["ReplicaState"].enum_types_by_name
    assert short_names(states["State"])[0] == "SERVING"


def test_a_passage_keeps_its_words() -> None:
    """Metadata are JSON of their own, and hold no choices."""
    passage = {"id": "1", "text": "hybrid", "metadata": {"retriever": "hybrid"}}
    value = {"passages": [passage]}
    assert with_full_names(feed_pb2.PutRequest.DESCRIPTOR, value) == value
