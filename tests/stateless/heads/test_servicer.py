"""The head service over real gRPC."""

import asyncio

import grpc
import pytest
from fake_encoder_groups import FakePredictions
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.errors import IdentityError, UnavailableError
from winnow.v1 import head_pb2, head_pb2_grpc


async def failed(
    address: str, request: head_pb2.PredictRequest, detail: Message | None = None
) -> tuple[StatusCode, str]:
    """The status of a call that fails; unpacks what it says more into `detail`."""
    async with grpc.aio.insecure_channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await head_pb2_grpc.HeadServiceStub(channel).Predict(request, timeout=LONG)
    if detail is not None:
        sent = dict(caught.value.trailing_metadata() or ())["grpc-status-details-bin"]
        assert any(each.Unpack(detail) for each in status_pb2.Status.FromString(sent).details)
    return caught.value.code(), caught.value.details() or ""


def asked(text: str = "hello", *ids: str) -> head_pb2.PredictRequest:
    return head_pb2.PredictRequest(text=text, head_ids=ids or ("intent",))


async def test_a_reply_has_everything_in_the_order_of_the_request(bundle: Bundle) -> None:
    fake = FakePredictions(bundle)
    fake.heads["en"].failing["mood"] = UnavailableError("gone")
    request = head_pb2.PredictRequest(
        texts=["Ada Lovelace wrote it", "word " * 20], head_ids=["names", "mood", "intent"]
    )
    async with fake.serving() as address, grpc.aio.insecure_channel(address) as channel:
        metadata = (("x-request-id", "mine"), ("x-winnow-client", "me"))
        reply = await head_pb2_grpc.HeadServiceStub(channel).Predict(request, metadata=metadata)
    first, second = reply.results
    assert (first.text_truncated, second.text_truncated) == (False, True)
    names, mood, intent = first.heads
    (entity,) = names.entities
    assert request.texts[0][entity.start : entity.end] == entity.text == "Ada Lovelace"
    assert (mood.failure, mood.version, list(mood.labels)) == ("gone", 0, [])
    assert (intent.failure, intent.version, len(intent.labels)) == ("", 1, 2)
    assert not intent.HasField("out_of_scope")
    assert (reply.ring, reply.request_id) == ("en", "mine")
    assert reply.timings.total_ms > 0
    assert fake.heads["en"].clients == ["me:predict"] * 2


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asked("hello", "nope"), StatusCode.NOT_FOUND),
        (head_pb2.PredictRequest(text="a", head_ids=["b"], ring="x"), StatusCode.NOT_FOUND),
        (asked("", "intent"), StatusCode.INVALID_ARGUMENT),
        (asked("a" * 100_000), StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_an_invalid_request_has_a_status(
    bundle: Bundle, request_: head_pb2.PredictRequest, code: StatusCode
) -> None:
    async with FakePredictions(bundle).serving() as address:
        assert (await failed(address, request_))[0] is code


async def test_a_head_of_another_encoder_is_a_failed_precondition(bundle: Bundle) -> None:
    fake = FakePredictions(bundle)
    fake.heads["en"].failing["intent"] = IdentityError("made for another encoder")
    async with fake.serving() as address:
        assert (await failed(address, asked()))[0] is StatusCode.FAILED_PRECONDITION


async def test_a_refusal_says_when_to_try_again(bundle: Bundle) -> None:
    fake, info = FakePredictions(bundle, most=16), error_details_pb2.RetryInfo()
    fake.encoders["en"].hangs = True
    full = asyncio.create_task(fake.predict(*(f"text {n}" for n in range(16))))
    await asyncio.wait_for(fake.encoders["en"].hanging.wait(), LONG)
    async with fake.serving() as address:
        assert (await failed(address, asked(), info))[0] is StatusCode.RESOURCE_EXHAUSTED
    assert info.retry_delay.ToNanoseconds() > 0
    full.cancel()
    await asyncio.wait([full])


async def test_a_front_without_heads_says_how_to_get_them(bundle: Bundle) -> None:
    async with FakePredictions(bundle, groups=False).serving() as address:
        code, said = await failed(address, asked())
    assert (code, said) == (
        StatusCode.UNAVAILABLE, "this front serves no heads: start it with --heads STORE",
    )  # fmt: skip


async def test_encoder_groups_and_their_heads_in_memory_are_listed(bundle: Bundle) -> None:
    async with (
        FakePredictions(bundle).serving() as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        stub = head_pb2_grpc.HeadServiceStub(channel)
        all_groups = (await stub.ListHeads(head_pb2.ListHeadsRequest())).rings
        (group,) = (await stub.ListHeads(head_pb2.ListHeadsRequest(ring="de"))).rings
    assert [each.name for each in all_groups] == ["en", "de"]
    assert (group.encoder_fingerprint, group.budget_bytes) == ("of-de", 512)
    (head,) = group.warm
    assert (head.head_id, head.version, head.bytes, head.pinned) == ("intent", 3, 100, True)


async def test_a_caller_that_hangs_up_frees_the_encoder(bundle: Bundle) -> None:
    fake = FakePredictions(bundle)
    encoder = fake.encoders["en"]
    encoder.hangs = True
    async with fake.serving() as address, grpc.aio.insecure_channel(address) as channel:
        call = head_pb2_grpc.HeadServiceStub(channel).Predict(asked())
        await asyncio.wait_for(encoder.hanging.wait(), LONG)
        call.cancel()
        await asyncio.wait_for(encoder.released.wait(), LONG)
