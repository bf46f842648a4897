"""A node refuses earlier attempts of a call, and forgets attempts that have expired."""

import pytest
from manual_clock import ManualClock

from simulation.growth import large_tables
from winnow.deadline import Deadline
from winnow.domain.write import WriteAttempt
from winnow.errors import UnavailableError
from winnow.shard_service.attempts import LatestAttempts


def test_expired_attempts_are_forgotten() -> None:
    clock, attempts = ManualClock(), LatestAttempts()
    for number in range(200):
        attempts.admit(WriteAttempt(f"call-{number}", 1), Deadline.after(5.0, clock))
        clock.advance(1.0)
    assert not list(large_tables(attempts, "attempts", 64))


def test_an_attempt_is_refused_until_its_deadline_if_a_later_one_has_arrived() -> None:
    clock, attempts = ManualClock(), LatestAttempts()
    deadline = Deadline.after(100.0, clock)
    attempts.admit(WriteAttempt("call", 2), deadline)
    for number in range(200):
        attempts.admit(WriteAttempt(f"call-{number}", 1), Deadline.after(50.0, clock))
    clock.advance(60.0)
    for number in range(200, 400):
        attempts.admit(WriteAttempt(f"call-{number}", 1), deadline)
    with pytest.raises(UnavailableError):
        attempts.admit(WriteAttempt("call", 1), deadline)
