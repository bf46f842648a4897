"""Admission by work: in time or refused, dimmed before refused, fair between clients."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.errors import DeadlineExceededError, OverloadedError
from winnow.policy.fair_queue import FairQueue
from winnow.policy.load import LoadSettings, ReadLoad, Ticket
from winnow.policy.pace import Pace

READ = 0.01
"""Seconds that the machine of these tests takes for a read."""
SETTINGS = LoadSettings()
PLAIN = LoadSettings(min_granted_share=1.0, reserved_share=0.0)
"""All reads or none, and nothing kept."""


@dataclass(eq=False)
class Asked:
    """A request in hand."""

    ticket: Ticket
    deadline: float
    unread: int


@dataclass
class Machine:
    """Does one read after another, with clients in turn, and lets in what `load` lets in."""

    settings: LoadSettings = SETTINGS
    clock: ManualClock = field(default_factory=ManualClock)
    waiting: FairQueue["Asked"] = field(default_factory=FairQueue)
    finished: list[tuple[Ticket, float]] = field(default_factory=list)
    """Each with the seconds that were left when it was finished."""
    refused: Counter[str] = field(default_factory=Counter)
    free_at: float = 0.0

    def __post_init__(self) -> None:
        self.pace = Pace(2.0, self.clock)
        self.load = ReadLoad(self.settings, self.clock, lambda: self.pace.seconds)

    def ask(self, reads: int, left: float, client: str = "") -> Ticket | None:
        try:
            ticket = self.load.admit(reads, left, client)
        except OverloadedError:
            self.refused[client] += 1
            return None
        if not len(self.waiting):
            self.pace.begin()
            self.free_at = self.clock() + READ
        self.waiting.add(client, Asked(ticket, self.clock() + left, ticket.reads))
        return ticket

    def run(self, seconds: float) -> None:
        """Works for a while."""
        until = self.clock() + seconds + 1e-9
        while self.free_at <= until and (taken := self.waiting.take()) is not None:
            self.clock.now = self.free_at
            self.free_at += READ
            asked = taken[1]
            asked.unread -= 1
            self.pace.done(1)
            if asked.unread:
                self.waiting.put_back(*taken)
            else:
                self.load.release(asked.ticket)
                self.finished.append((asked.ticket, asked.deadline - self.clock()))
        self.clock.now = until

    def warm(self) -> "Machine":
        """Lets it learn its pace."""
        self.ask(10, 10.0)
        self.run(10 * READ)
        self.finished.clear()
        assert self.pace.seconds == pytest.approx(READ)
        assert not self.load.reads_in_flight
        return self


def fill(machine: Machine, left: float, client: str = "", reads: int = 10) -> list[int]:
    """Asks until it is refused; the reads that were granted."""
    granted = []
    while (ticket := machine.ask(reads, left, client)) is not None:
        granted.append(ticket.reads)
    return granted


def test_an_idle_machine_lets_in_what_is_asked() -> None:
    machine = Machine()
    assert machine.load.admit(10, 1.0) == Ticket("", 10, 10)
    assert machine.load.reads_in_flight == 10


def test_reads_are_let_in_as_long_as_they_can_be_done_in_time() -> None:
    machine = Machine(PLAIN).warm()
    assert sum(fill(machine, left=1.0)) == 80, "0.8 of a second is usable, at 10 ms per read"


@given(st.integers(0, 30), st.integers(1, 12), st.sampled_from([0.05, 0.4, 2.0]), st.booleans())
def test_whether_all_would_be_granted_is_known_without_asking(
    before: int, reads: int, left: float, same: bool
) -> None:
    machine = Machine()
    for _ in range(before):
        machine.ask(10, 2.0, "greedy")
    client = "greedy" if same else "other"
    known = machine.load.would_grant_all(reads, left, client)
    assert known == machine.load.would_grant_all(reads, left, client), (
        "and nothing is remembered of it"
    )
    held = machine.load.in_flight(client)
    ticket = machine.ask(reads, left, client)
    assert known == (ticket is not None and ticket.reads == reads)
    assert machine.load.in_flight(client) - held == (ticket.reads if ticket else 0)


def test_under_pressure_nobody_s_share_is_reckoned_to_know_that_not_all_would_be_granted() -> None:
    """A share takes time that grows with the clients, and as many clients may ask at once."""
    looks = Counter[str]()

    def others() -> int:
        looks["others"] += 1
        return 0

    load = ReadLoad(SETTINGS, ManualClock(), lambda: READ, others)
    while load.reads_in_flight < 130:
        load.admit(10, 2.0, f"client {load.reads_in_flight}")
    looks.clear()
    assert not any(load.would_grant_all(10, 2.0, f"newcomer {n}") for n in range(100))
    assert not looks


def test_work_is_counted_in_reads_and_not_in_requests() -> None:
    by_ten, by_one = Machine(PLAIN).warm(), Machine(PLAIN).warm()
    assert len(fill(by_ten, 1.0, reads=10)) == 8
    assert len(fill(by_one, 1.0, reads=1)) == 80


def test_the_longer_the_deadline_the_more_may_wait() -> None:
    machine = Machine(PLAIN).warm()
    assert sum(fill(machine, left=0.5)) == 40
    assert sum(fill(machine, left=1.5)) == 80, "120 less the 40 that are in hand"


def test_the_queue_is_bounded_however_long_the_deadline() -> None:
    machine = Machine(replace(PLAIN, max_reads=50)).warm()
    assert sum(fill(machine, left=1e9)) == 50


def test_the_queue_is_bounded_while_the_pace_is_unknown() -> None:
    assert sum(fill(Machine(replace(PLAIN, max_reads=50)), left=0.001)) == 50


def test_while_the_pace_is_unknown_work_is_dimmed_as_the_queue_fills_and_kept_for_others() -> None:
    """Which is all that can be said: a node tells its pace before it takes its first question."""
    machine = Machine(replace(SETTINGS, max_reads=100))
    machine.load = ReadLoad(machine.settings, machine.clock, lambda: None)
    machine.ask(10, 0.001, "modest")
    granted = fill(machine, left=0.001, client="greedy")
    assert (granted[0], granted[-1]) == (10, 3)
    assert machine.ask(10, 0.001, "modest") is not None
    assert machine.load.reads_in_flight <= 100


@pytest.mark.parametrize("unit", [1, 3, 5])
def test_work_that_comes_in_units_is_granted_and_counted_in_whole_units(unit: int) -> None:
    machine = Machine(replace(SETTINGS, reserved_share=0.0)).warm()
    granted = []
    while True:
        try:
            granted.append(machine.load.admit(10 * unit, 4.0, unit=unit).reads)
        except OverloadedError:
            break
    assert machine.load.reads_in_flight == sum(granted) <= 160, "a longer deadline buys no more"
    assert all(reads % unit == 0 for reads in granted)
    assert granted[0] == 10 * unit
    assert 3 * unit <= granted[-1] < 10 * unit


def test_a_unit_larger_than_the_queue_is_let_in_while_there_is_nothing_else() -> None:
    machine = Machine(replace(PLAIN, max_reads=5))
    assert machine.load.admit(8, 1.0, unit=8).reads == 8
    with pytest.raises(OverloadedError):
        machine.load.admit(8, 1.0, unit=8)


def test_a_refusal_says_when_there_will_be_room() -> None:
    machine = Machine(PLAIN).warm()
    fill(machine, left=1.0, reads=1)
    with pytest.raises(
        OverloadedError, match=r"80 are waiting to be read, and only 80 can be read in time"
    ) as refusal:
        machine.load.admit(15, 1.0)
    assert refusal.value.retry_after == pytest.approx(15 * READ)
    machine.run(refusal.value.retry_after - 2 * READ)
    assert machine.ask(15, 1.0) is None
    machine.run(4 * READ)
    assert machine.ask(15, 1.0) is not None


@pytest.mark.parametrize(("reads", "wait"), [(1, 0.05), (75, 0.6)])
def test_waits_that_are_told_stay_within_bounds(reads: int, wait: float) -> None:
    machine = Machine(replace(PLAIN, max_retry_after=0.6)).warm()
    fill(machine, left=1.0)
    with pytest.raises(OverloadedError) as refusal:
        machine.load.admit(reads, 1.0)
    assert refusal.value.retry_after == pytest.approx(wait)


@pytest.mark.parametrize("left", [0.0, -1.0])
def test_what_has_no_time_left_is_late_whether_there_is_room_or_not(left: float) -> None:
    machine = Machine()
    with pytest.raises(DeadlineExceededError):
        machine.load.admit(10, left)
    assert machine.load.reads_in_flight == 0


def test_an_old_estimate_never_shuts_the_door_of_an_idle_machine() -> None:
    machine = Machine()
    machine.clock.advance(3600.0)
    machine.pace.done(10)
    ticket = machine.ask(10, 1.0)
    assert ticket is not None
    assert ticket.reads == 3, "the least that is allowed, as a trial"
    for _ in range(600):
        machine.run(0.1)
        machine.ask(10, 1.0)
    assert machine.pace.seconds == pytest.approx(READ, rel=0.1)


def test_fewer_passages_are_read_the_fuller_it_is_and_never_below_the_floor() -> None:
    granted = fill(Machine(replace(SETTINGS, reserved_share=0.0)).warm(), left=2.0)
    assert granted[0] == 10
    assert granted[-1] == 3
    assert all(later <= earlier for earlier, later in pairwise(granted))
    assert set(granted) >= set(range(4, 11)), "step by step"
    assert sum(reads for reads in granted if reads == 10) >= 80, "up to half of 160 it is calm"


def test_what_others_let_in_leaves_less_for_me() -> None:
    load = ReadLoad(PLAIN, ManualClock(), lambda: READ, lambda: 50)
    assert load.admit(10, 1.0).reads == 10
    with pytest.raises(OverloadedError):  # they are served in turn with what I have
        load.admit(31, 1.0)
    assert load.admit(30, 1.0).reads == 30


def test_without_brown_out_all_reads_are_granted_or_none() -> None:
    assert set(fill(Machine(PLAIN).warm(), left=1.0)) == {10}


def overload(settings: LoadSettings, clients: dict[str, float], seconds: float = 30.0) -> Machine:
    """`clients`: seconds between one's questions, of ten reads and a deadline of one second."""
    machine = Machine(settings).warm()
    began = machine.clock()
    due = {client: began + pause / 2 for client, pause in clients.items()}
    while (client := min(due, key=lambda name: due[name])) and due[client] < began + seconds:
        machine.run(due[client] - machine.clock())
        machine.ask(10, 1.0, client)
        due[client] += clients[client]
    return machine


@pytest.mark.parametrize("settings", [PLAIN, SETTINGS])
def test_at_four_times_the_load_the_machine_does_what_it_can(settings: LoadSettings) -> None:
    machine = overload(settings, {"a": 0.025})
    assert machine.refused["a"], "it is too much"
    in_time = sum(ticket.reads for ticket, left in machine.finished if left >= 0)
    assert in_time * READ >= 0.95 * 30.0


def test_in_a_brown_out_more_questions_are_answered() -> None:
    bright, dimmed = (len(overload(s, {"a": 0.025}).finished) for s in (PLAIN, SETTINGS))
    assert dimmed > 1.5 * bright


def reads_by_client(machine: Machine) -> Counter[str]:
    reads: Counter[str] = Counter()
    for ticket, _ in machine.finished:
        reads[ticket.client] += ticket.reads
    return reads


def test_a_client_alone_may_use_everything() -> None:
    machine = Machine(replace(SETTINGS, min_granted_share=1.0)).warm()
    assert sum(fill(machine, left=1.0)) == 80


def test_who_comes_while_there_are_several_finds_room_however_much_one_asks() -> None:
    machine = Machine().warm()
    machine.ask(10, 1.0, "modest")
    machine.run(1.0)
    fill(machine, left=1.0, client="greedy")
    assert machine.ask(10, 1.0, "greedy") is None
    assert machine.ask(10, 1.0, "modest") is not None


def test_who_comes_to_one_that_was_alone_is_let_in_once_a_part_of_it_is_done() -> None:
    machine = Machine().warm()
    machine.run(SETTINGS.presence_seconds)
    fill(machine, left=2.0, client="greedy")
    assert machine.ask(10, 1.0, "newcomer") is None
    machine.run(0.2)
    assert machine.ask(10, 2.0, "greedy") is None
    assert machine.ask(10, 1.0, "newcomer") is not None


def test_a_greedy_client_does_not_take_the_share_of_a_modest_one() -> None:
    """The modest one asks for its half of a hundred reads a second, the greedy one for 20 times."""
    fair = overload(replace(SETTINGS, min_granted_share=1.0), {"greedy": 0.01, "modest": 0.2})
    reads = reads_by_client(fair)
    assert reads["modest"] >= 0.45 * reads.total()


def test_what_a_modest_client_does_not_want_goes_to_the_greedy_one() -> None:
    machine = overload(replace(SETTINGS, min_granted_share=1.0), {"greedy": 0.01, "modest": 1.0})
    reads = reads_by_client(machine)
    assert not machine.refused["modest"]
    assert reads["greedy"] * READ >= 0.85 * 30.0


def test_clients_that_ask_for_the_same_get_the_same() -> None:
    reads = reads_by_client(overload(SETTINGS, dict.fromkeys("abcd", 0.05)))
    assert min(reads.values()) >= 0.9 * max(reads.values())


def waiting(machine: Machine) -> Iterator[Asked]:
    for line in machine.waiting._lines.values():
        yield from line


@pytest.mark.parametrize("left", [2.0, 10.0, 1e6])
@pytest.mark.parametrize("own", [0.5, 1.0, 2.0])
def test_a_longer_deadline_buys_nobody_elses_turn(left: float, own: float) -> None:
    """64 clients of one name ask again at once, with any deadline; one asks now and then."""
    machine = Machine().warm()
    for _ in range(100):
        machine.run(0.1)
        for _ in range(64):
            machine.ask(10, left, "greedy")
        machine.ask(5, own, "polite")
    mine = [late for ticket, late in machine.finished if ticket.client == "polite"]
    assert machine.refused["polite"] <= 10, "at first, as the greedy one was alone"
    assert len(mine) >= 85
    assert min(mine) >= 0


def answered(names: int, polite: float = 0.0, renamed: bool = False) -> Machine:
    """Five times the load for 20 s, under `names` names in turn, or a new name for each."""
    machine = Machine().warm()
    began = machine.clock()
    asked, due = 0, machine.clock() + polite
    while machine.clock() < began + 20.0:
        machine.run(0.02)
        name = f"name-{asked if renamed else asked % max(names, 1)}" if names else ""
        machine.ask(10, 2.0, name)
        asked += 1
        if polite and machine.clock() >= due:
            machine.ask(10, 2.0, "polite")
            due += polite
    return machine


@pytest.mark.parametrize("names", [2, 10, 120, 200, 2_000])
def test_names_cost_no_goodput(names: int) -> None:
    alone, named = answered(0), answered(names)
    for machine in (alone, named):
        assert sum(left < 0 for _, left in machine.finished) <= 0.02 * len(machine.finished)
    reads = [sum(ticket.reads for ticket, _ in each.finished) for each in (named, alone)]
    assert reads[0] >= 0.95 * reads[1]
    if names >= 120:  # a few names hold less at once, so that each question gets more passages
        assert len(named.finished) >= 0.95 * len(alone.finished)


def test_who_asks_beside_a_new_name_for_every_request_is_answered() -> None:
    machine = answered(1, polite=0.2, renamed=True)
    mine = [left for ticket, left in machine.finished if ticket.client == "polite"]
    assert len(mine) >= 10, "one after the other, each in the time of all that wait"
    assert min(mine) >= 0


def test_who_asks_beside_two_hundred_names_has_its_turn_as_they_have() -> None:
    machine = answered(200, polite=0.2)
    by_client = Counter(ticket.client for ticket, _ in machine.finished)
    others = [by_client[f"name-{number}"] for number in range(200)]
    assert by_client["polite"] >= sum(others) / len(others) - 1


requests = st.lists(
    st.tuples(st.floats(0, 0.3), st.integers(1, 30), st.floats(0.5, 3), st.sampled_from("abc")),
    min_size=1,
    max_size=60,
)


@given(requests, st.sampled_from([PLAIN, SETTINGS]))
def test_whoever_is_let_in_while_nobody_else_asks_is_done_in_time(
    asked: list[tuple[float, int, float, str]], settings: LoadSettings
) -> None:
    machine = Machine(settings).warm()
    for pause, reads, left, _ in asked:
        machine.run(pause)
        machine.ask(reads, max(left, settings.horizon), "a")
    machine.run(1e3)
    assert all(left >= 0 for _, left in machine.finished)
    assert len(machine.finished) + machine.refused.total() == len(asked)
    assert (machine.load.reads_in_flight, len(machine.waiting)) == (0, 0)


@given(requests, st.integers(1, 3), st.sampled_from([PLAIN, SETTINGS]))
def test_whoever_is_let_in_and_has_no_more_than_its_part_is_done_in_time(
    asked: list[tuple[float, int, float, str]], own: int, settings: LoadSettings
) -> None:
    """For any requests and deadlines of the three others. Of four
    clients each has every eighth turn, if others that asked for little are ahead of it now and then.
    """
    machine = Machine(settings).warm()
    for number, (pause, reads, left, client) in enumerate(asked):
        machine.run(pause)
        machine.ask(reads, left * 10, client)
        if number % 5 == 0 and not machine.load._shares.in_flight("polite"):
            machine.ask(own * 3, 3 * 8 * own * READ / settings.usable_share, "polite")
    machine.run(1e3)
    assert all(left >= 0 for ticket, left in machine.finished if ticket.client == "polite")


@given(requests, st.integers(1, 60), st.floats(0.1, 1))
def test_reads_in_hand_are_counted_and_bounded_and_nobody_gets_less_than_the_floor(
    asked: list[tuple[float, int, float, str]], most: int, min_granted_share: float
) -> None:
    machine = Machine(LoadSettings(max_reads=most, min_granted_share=min_granted_share))
    for pause, reads, left, client in asked:
        machine.run(pause)
        ticket = machine.ask(reads, left, client)
        in_hand = {id(each): each.ticket.reads for each in waiting(machine)}
        assert machine.load.reads_in_flight == sum(in_hand.values()) <= most
        if ticket is not None:
            assert (
                min(min_granted_share * reads - 1e-6, most)
                <= ticket.reads
                <= ticket.requested
                == reads
            )
