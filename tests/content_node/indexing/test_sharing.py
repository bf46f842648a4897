"""Pieces are shared out among workers that come late, die, or never come."""

from collections import deque

import numpy as np
import pytest

from winnow.content_node.indexing.workers.piece import (
    Came,
    EncodedBatch,
    Event,
    Lost,
    PassageBatch,
    piece_of,
)
from winnow.content_node.indexing.workers.sharing import AHEAD, share_out
from winnow.errors import UnavailableError


def pieces(number: int) -> list[PassageBatch]:
    return [piece_of([(row, (row,), (row,))]) for row in range(number)]


class ScriptedCrew:
    """Does what it is given, oldest first, unless the script says what happens before that."""

    def __init__(self, size: int, *script: Event | str) -> None:
        self.size = size
        self.hands: dict[int, deque[PassageBatch]] = {number: deque() for number in range(size)}
        self.most = 0
        self.did: dict[int, int] = dict.fromkeys(range(size), 0)
        self._script = deque(script)

    def give(self, worker: int, piece: PassageBatch) -> None:
        self.hands[worker].append(piece)
        self.most = max(self.most, len(self.hands[worker]))

    def next(self) -> Event:
        if self._script and not isinstance(self._script[0], str):
            event = self._script.popleft()
            assert not isinstance(event, str)
            if isinstance(event, Lost):
                held = tuple(self.hands.pop(event.worker))
                return Lost(event.worker, held, event.reason)
            return event
        if self._script:
            self._script.popleft()
        worker = min((each for each in self.hands if self.hands[each]), key=self.did.__getitem__)
        self.did[worker] += 1
        piece = self.hands[worker].popleft()
        return EncodedBatch(worker, piece, np.zeros((1, 2), np.float32))


def done(crew: ScriptedCrew, number: int) -> list[int]:
    events = share_out(pieces(number), crew)
    return sorted(
        row for each in events if isinstance(each, EncodedBatch) for row in each.piece.rows
    )


def lost(worker: int, reason: str = "killed") -> Lost:
    return Lost(worker, (), reason)


STEP = "a piece is done"


def test_every_piece_is_done_once_and_no_worker_has_many_in_hand() -> None:
    crew = ScriptedCrew(3, Came(0), Came(1), Came(2))
    assert done(crew, 20) == list(range(20))
    assert crew.most == AHEAD
    assert min(crew.did.values()) >= 6


def test_a_worker_that_comes_late_takes_its_part() -> None:
    crew = ScriptedCrew(2, Came(0), STEP, STEP, Came(1))
    assert done(crew, 20) == list(range(20))
    assert crew.did[1] > 6


def test_a_worker_that_never_comes_is_not_waited_for() -> None:
    assert done(ScriptedCrew(2, Came(0)), 5) == list(range(5))


def test_what_a_lost_worker_had_in_hand_goes_to_the_others() -> None:
    crew = ScriptedCrew(2, Came(0), Came(1), STEP, lost(0))
    assert done(crew, 9) == list(range(9))


def test_the_last_pieces_of_a_lost_worker_go_to_one_that_had_nothing_left_to_do() -> None:
    crew = ScriptedCrew(2, Came(0), Came(1), STEP, STEP, STEP, lost(0))
    assert done(crew, 4) == list(range(4))


def test_if_all_that_came_are_lost_those_that_come_later_do_their_work() -> None:
    crew = ScriptedCrew(2, Came(0), lost(0), Came(1))
    assert done(crew, 3) == list(range(3))


def test_the_loss_of_every_worker_is_an_error_that_says_why() -> None:
    crew = ScriptedCrew(2, lost(1, "no core"), Came(0), STEP, lost(0, "out of memory"))
    told: list[Event] = []
    with pytest.raises(UnavailableError, match="every worker is lost, the last one: out of memory"):
        told.extend(share_out(pieces(9), crew))
    # what was done before is not thrown away
    assert sum(isinstance(each, EncodedBatch) for each in told) == 1
