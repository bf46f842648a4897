"""How much memory an answer takes. Pure."""

from sys import getsizeof

from winnow.domain.answered import Answer, Answered
from winnow.domain.coverage import ShardCoverage

# beside texts, measured with `tracemalloc`
_REPLY, _ANSWER, _SHARD = 1_000, 500, 100


def weight(answered: Answered) -> int:
    """Bytes of an answer that is kept, about; texts weigh most."""
    answers = sum(map(_answer, answered.answers))
    packed = answered.packed.weight if answered.packed else 0
    return _REPLY + answers + sum(map(_shard, answered.coverage.shards)) + packed


def _answer(answer: Answer) -> int:
    passage = answer.reading.passage
    texts = (passage.id, passage.title, passage.text, passage.metadata)
    return _ANSWER + sum(map(getsizeof, texts))


def _shard(part: ShardCoverage) -> int:
    return _SHARD + getsizeof(part.reason)
