"""Random requests to read texts: each is served or refused by name, and none fails otherwise."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_messages import floats, text, texts, uint32
from text_reading import reading_core

from winnow.convert import read as convert
from winnow.deadline import Deadline
from winnow.errors import InvalidRequestError, Violation
from winnow.stateless.reading.core import ReadCore
from winnow.v1 import answer_pb2, read_pb2

PASSAGES: Any = st.lists(st.builds(answer_pb2.Passage, id=text, title=text, text=texts), max_size=4)
TEXTS: Any = st.just([]) | st.lists(texts, max_size=20)
OPTIONS: dict[str, Any] = {
    "max_answer_tokens": st.none() | uint32,
    "min_confidence": st.none() | floats,
}
CALLS: Any = st.one_of(
    st.builds(
        read_pb2.ReadTextsRequest,
        question=text,
        texts=TEXTS,
        passages=st.just([]) | PASSAGES,
        answers=st.none() | uint32,
        **OPTIONS,
    ),
    st.builds(read_pb2.RerankTextsRequest, question=text, texts=TEXTS, top_n=st.none() | uint32),
    st.builds(
        read_pb2.HighlightTextRequest,
        question=text,
        text=texts,
        title=text,
        sentences=st.none() | uint32,
        **OPTIONS,
    ),
)


@pytest.mark.hypothesis
@given(call=CALLS)
async def test_a_request_is_served_or_refused(call: Any) -> None:
    """An error names the fields that break a rule."""
    with reading_core() as made:
        refused = await _serve(made.core, call)
    assert all(each.field and each.description for each in refused)


async def _serve(core: ReadCore, call: Any) -> tuple[Violation, ...]:
    """Serves a call, and checks its reply; returns the violations if it is refused."""
    deadline = Deadline.after(600)
    try:
        if isinstance(call, read_pb2.ReadTextsRequest):
            found = await core.read(convert.read_of_message(call), deadline)
            message: Any = convert.readings_to_message(found)
            assert len(message.readings) == len(call.texts) + len(call.passages)
        elif isinstance(call, read_pb2.RerankTextsRequest):
            ranked = await core.rerank(convert.rerank_of_message(call), deadline)
            message = convert.ranked_to_message(ranked)
            assert len(message.results) == min(len(call.texts), call.top_n or len(call.texts))
        else:
            shown = await core.highlight(convert.highlight_of_message(call), deadline)
            message = convert.highlighted_to_message(shown)
            for each in message.sentences:
                assert call.text[each.start : each.end] == each.text
                assert call.text[each.span_start : each.span_end] == each.span
    except InvalidRequestError as error:
        return error.violations
    return ()
