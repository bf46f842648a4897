"""What an answer or a failure lacked that another attempt might have. Pure."""

from winnow.domain.answered import Answered
from winnow.domain.coverage import ShardStatus
from winnow.errors import DeadlineExceededError, OverloadedError, WinnowError
from winnow.policy.attempts import Lack
from winnow.stateless.answer.scatter import failed_shards

_OF_STATUS = {
    ShardStatus.TIMEOUT: Lack.TIME,
    ShardStatus.ADAPTIVE: Lack.TIME,
    ShardStatus.OVERLOADED: Lack.SHARE,
}
"""Nodes share fairly among clients, so that another one may be let in. All other failures are the
same for everybody: each call was retried already.
"""


def lack_of_answer(found: Answered) -> tuple[Lack, tuple[int, int]]:
    """What was too little, and what the answer is worth beside others to the same question."""
    lack = Lack.ROOM if found.dimmed else Lack.NOTHING
    for part in found.coverage.shards:
        lack |= _OF_STATUS.get(part.status, Lack.NOTHING)
    return lack, (found.coverage.searched, found.passages_granted)


def lack_of_error(error: BaseException) -> Lack:
    """What was too little; nothing if every attempt would fail so."""
    if not isinstance(error, WinnowError):
        return Lack.NOTHING
    lack = Lack.NOTHING
    for _, status in failed_shards(error):
        lack |= _OF_STATUS.get(status, Lack.NOTHING)
    if isinstance(error, OverloadedError):
        lack |= Lack.SHARE
    if isinstance(error, DeadlineExceededError):
        lack |= Lack.TIME
    return lack
