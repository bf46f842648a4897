"""The writes that an answer must know of."""

import pytest

from winnow.domain.write import Position
from winnow.errors import InvalidRequestError
from winnow.rpc.status import rich_status
from winnow.stateless.answer.validation import check_shards


def test_the_error_of_very_many_wrong_shards_can_be_sent() -> None:
    with pytest.raises(InvalidRequestError, match="shard 3 is not one of 0 to 2") as raised:
        check_shards([Position(shard, 1) for shard in range(3, 3_000)], 3)
    sent = rich_status(raised.value).trailing_metadata
    assert sum(len(value) for _, value in sent) < 4_096
