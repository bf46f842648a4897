"""How often a tenant may call a front."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest
from known_caller import called_by
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from winnow import caller, reply_headers
from winnow.caller import Caller, Lease
from winnow.deadline import Deadline
from winnow.domain.passage_request import PageRequest, PassageResults
from winnow.domain.quota import QuotaLimit, Quotas, TenantQuota
from winnow.errors import TENANT_QUOTA, OverloadedError
from winnow.keys.key import Scope
from winnow.stateless.indexes.by_name import IndexedPassages
from winnow.stateless.tenants.metrics import QuotaMetrics
from winnow.stateless.tenants.quotas import TenantQuotas
from winnow.stateless.tenants.tenancy import Tenancy


@pytest.fixture(autouse=True)
def nobody_calls_afterwards() -> Iterator[None]:
    yield
    caller.forget()


@dataclass
class FakeCluster:
    """A cluster of an index with tenants."""

    has_tenants: bool = True
    index_id: str = "index"


@dataclass
class FakePages:
    """A core whose exports have this number of pages."""

    pages: int
    closed: bool = False
    """Whether an export has ended."""

    async def export(self, *_: object) -> AsyncGenerator[PassageResults, None]:
        try:
            for left in reversed(range(self.pages)):
                yield PassageResults(passages=(), next_page_token="more" if left else "")
        finally:
            self.closed = True


@dataclass
class FakeParts:
    """The parts of a front for one index."""

    tenancy: Tenancy
    passages: FakePages


@dataclass
class FakeIndex:
    """The only index of a front."""

    parts: FakeParts
    name: None = None


@dataclass
class Front:
    """The tenants of a front with quotas."""

    quotas: Quotas
    clock: ManualClock = field(default_factory=ManualClock)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.limits = TenantQuotas(
            lambda: self.quotas, QuotaMetrics(self.registry), self.clock, self.sleep
        )
        self.tenancy = Tenancy(FakeCluster, self.limits)  # type: ignore[arg-type]

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def ask(self, tenant: str, times: int = 1) -> None:
        for _ in range(times):
            self.tenancy.scope_of(tenant).limits.admit_question()


FIVE = Quotas(default=TenantQuota(questions_per_second=5.0, writes_per_second=10.0))


def test_questions_beyond_the_quota_are_refused_with_the_time_to_come_again() -> None:
    front = Front(FIVE)
    with called_by(Scope.ASK, tenant="acme"):
        front.ask("acme", 5)
        with pytest.raises(OverloadedError, match="quota of 5 questions a second") as caught:
            front.ask("acme")
        assert caller.message_of(caught.value) == str(caught.value)
    assert caught.value.retry_after == pytest.approx(0.2)
    assert caught.value.faults[0].reason == TENANT_QUOTA
    front.clock.advance(caught.value.retry_after)
    front.ask("acme")


def test_replies_tell_what_is_left_before_a_call_is_refused() -> None:
    front, told = Front(FIVE), reply_headers.begin()
    front.ask("acme", 3)
    assert told == {"ratelimit-policy": '"questions";q=5;w=1', "ratelimit": '"questions";r=2;t=1'}


def test_a_tenant_beyond_its_quota_takes_nothing_from_others() -> None:
    front = Front(FIVE)
    with pytest.raises(OverloadedError):
        front.ask("acme", 6)
    front.ask("bolt", 5)
    front.tenancy.scope_of("acme").limits.admit_writes(10)


def test_a_quota_of_its_own_replaces_the_default_one_as_soon_as_it_is_read() -> None:
    front = Front(FIVE)
    front.quotas = Quotas(default=FIVE.default, by_tenant={"acme": TenantQuota(passages=1)})
    front.ask("acme", 100)
    with pytest.raises(OverloadedError):
        front.ask("bolt", 6)


def test_calls_of_administrators_for_a_tenant_do_not_count() -> None:
    front = Front(FIVE)
    caller.bind(Caller("root", lambda: nullcontext(Lease()), lambda _: True, lambda _: None))
    front.ask("acme", 100)
    caller.forget()
    front.ask("acme", 5)


async def test_a_stream_waits_instead_of_failing() -> None:
    front = Front(FIVE)
    limits = front.tenancy.scope_of("acme").limits
    began = front.clock()
    for _ in range(5):
        await limits.wait_for_writes(10)
    assert front.clock() - began == pytest.approx(4.0)


async def test_a_waiting_stream_goes_on_soon_after_its_quota_was_raised() -> None:
    front = Front(Quotas(default=TenantQuota(writes_per_second=0.001)))
    limits = front.tenancy.scope_of("acme").limits
    await limits.wait_for_writes(1)
    began = front.clock()

    async def raise_quota(seconds: float) -> None:
        front.clock.advance(seconds)
        front.quotas = FIVE

    front.limits.sleep = raise_quota
    await limits.wait_for_writes(1)
    assert front.clock() - began < 5.0


@pytest.mark.parametrize("pages", [1, 3])
async def test_an_export_counts_as_many_questions_as_it_has_pages(pages: int) -> None:
    """It ends with its last page, without a wait for another question."""
    front = Front(Quotas(default=TenantQuota(questions_per_second=0.1)))
    passages = IndexedPassages(lambda _: FakeIndex(FakeParts(front.tenancy, FakePages(pages))))  # type: ignore[arg-type, return-value]
    began = front.clock()
    exported = passages.export(PageRequest(tenant="acme"), lambda: Deadline.after(60))
    assert len([page async for page in exported]) == pages
    assert front.clock() - began == pytest.approx(10.0 * (pages - 1))


async def test_an_export_whose_caller_leaves_is_closed_at_once() -> None:
    front = Front(Quotas(default=TenantQuota(questions_per_second=0.1)))
    pages = FakePages(3)
    passages = IndexedPassages(lambda _: FakeIndex(FakeParts(front.tenancy, pages)))  # type: ignore[arg-type, return-value]
    exported = passages.export(PageRequest(tenant="acme"), lambda: Deadline.after(60))
    await anext(exported)
    await exported.aclose()
    assert pages.closed


def test_metrics_count_tenants_without_naming_them_and_the_log_names_them_once() -> None:
    front = Front(FIVE)
    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(OverloadedError):
                front.ask("acme", 6)
    page = generate_latest(front.registry).decode()
    limit = QuotaLimit.QUESTIONS.value
    assert f'winnow_front_quota_refusals_total{{limit="{limit}"}} 2.0' in page
    assert f'winnow_front_tenants_near_quota{{limit="{limit}"}} 1.0' in page
    assert "acme" not in page
    assert [(each["tenant"], each["limit"]) for each in logs] == [("acme", limit)]
    front.clock.advance(61.0)
    near = f'winnow_front_tenants_near_quota{{limit="{limit}"}} 0.0'
    assert near in generate_latest(front.registry).decode()


def test_metrics_tell_when_the_quotas_were_last_those_of_the_file() -> None:
    registry = CollectorRegistry()
    QuotaMetrics(registry).watch_file(lambda: 1_700_000_000.0)
    shown = generate_latest(registry).decode()
    assert "winnow_front_quotas_current_timestamp_seconds 1.7e+09" in shown


def test_tenants_that_have_stopped_calling_take_no_memory() -> None:
    """Without keys a caller may name any tenant."""
    front = Front(FIVE)
    for number in range(5_000):
        front.ask(f"t{number}")
        front.clock.advance(0.01)
    assert len(front.limits._buckets[QuotaLimit.QUESTIONS]) <= 1_001
