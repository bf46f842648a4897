"""Who gets in by a key, and who no longer does."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry, generate_latest

from winnow import caller
from winnow.errors import (
    OverloadedError,
    PermissionDeniedError,
    UnauthenticatedError,
    WinnowError,
)
from winnow.keys.gate import Gate, header_gate
from winnow.keys.key import Key, Scope
from winnow.keys.metrics import KeyMetrics
from winnow.keys.token import PREFIX, digest_of, token_of_headers
from winnow.policy.rates import Rate
from winnow.rpc import client_key

TOKEN = PREFIX + "a" * 43
KEY = Key(name="alice", digest=digest_of(TOKEN), scopes=frozenset({Scope.ASK, Scope.FEED}))


@pytest.fixture(autouse=True)
def nobody_calls_afterwards() -> Iterator[None]:
    yield
    caller.forget()


def limited(rate: Rate) -> Key:
    return Key(name=KEY.name, digest=KEY.digest, scopes=KEY.scopes, rate=rate)


def test_a_known_token_opens_what_its_key_is_for() -> None:
    gate = Gate([KEY])
    assert gate.admit(Scope.ASK, TOKEN).name == "alice"
    with pytest.raises(PermissionDeniedError, match="alice lacks the scope 'predict'"):
        gate.admit(Scope.PREDICT, TOKEN)


@pytest.mark.parametrize(
    "token", ["", "x", TOKEN[:-1], TOKEN + "x", PREFIX + "b" * 43, "é", KEY.digest]
)
def test_other_tokens_open_nothing_and_are_not_repeated(token: str) -> None:
    """Not even a hash that was read in the file."""
    with pytest.raises(UnauthenticatedError) as caught:
        Gate([KEY]).admit(Scope.ASK, token)
    assert len(token) < 2 or token not in str(caught.value)


def test_a_token_whose_digest_begins_as_another_does_opens_nothing() -> None:
    alike = Key(name="bob", digest=KEY.id + "0" * (64 - len(KEY.id)), scopes=KEY.scopes)
    with pytest.raises(UnauthenticatedError):
        Gate([alike]).admit(Scope.ASK, TOKEN)


def test_a_rate_counts_over_all_scopes_and_says_when_to_try_again() -> None:
    clock = ManualClock()
    gate = Gate([limited(Rate(0.5, 2))], clock)
    gate.admit(Scope.ASK, TOKEN)
    gate.admit(Scope.FEED, TOKEN)
    with pytest.raises(
        OverloadedError, match=r"alice exceeds its rate of 0\.5 calls per second"
    ) as caught:
        gate.admit(Scope.ASK, TOKEN)
    assert caught.value.retry_after == pytest.approx(2.0)
    clock.advance(2.0)
    gate.admit(Scope.ASK, TOKEN)


def test_a_call_without_the_scope_is_not_counted() -> None:
    gate = Gate([limited(Rate(1, 1))], ManualClock())
    with pytest.raises(PermissionDeniedError):
        gate.admit(Scope.ADMIN, TOKEN)
    gate.admit(Scope.ASK, TOKEN)


def test_refused_calls_are_counted_by_scope_and_reason_and_never_by_key() -> None:
    """All series are there from the beginning: one that begins with 1 has not grown."""
    registry = CollectorRegistry()
    gate = Gate([limited(Rate(1, 1))], ManualClock(), KeyMetrics(registry).count_refusal)
    by_headers = header_gate(gate)
    assert refusals(registry) == {}
    gate.admit(Scope.ASK, TOKEN)
    for scope, token in [
        (Scope.ASK, ""),
        (Scope.ASK, "nobody's"),
        (Scope.ADMIN, TOKEN),
        (Scope.FEED, TOKEN),
    ]:
        with pytest.raises(WinnowError):
            gate.admit(scope, token)
    with pytest.raises(UnauthenticatedError):
        by_headers("ask", ())
    assert refusals(registry) == {
        ("ask", "unauthenticated"): 3,
        ("admin", "permission_denied"): 1,
        ("feed", "rate"): 1,
    }
    page = generate_latest(registry).decode()
    assert page.count("winnow_front_key_refusals_total{") == len(Scope) * 3
    assert not any(word in page for word in (TOKEN, KEY.name, KEY.id, "nobody"))


def refusals(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["scope"], sample.labels["reason"]): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name.endswith("_total") and sample.value
    }


def test_reading_the_keys_again_gives_no_new_burst() -> None:
    gate = Gate([limited(Rate(1, 1))], ManualClock())
    gate.admit(Scope.ASK, TOKEN)
    gate.update([limited(Rate(1, 1))])
    with pytest.raises(OverloadedError):
        gate.admit(Scope.ASK, TOKEN)


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ([], UnauthenticatedError),
        (
            [Key(name="alice", digest=KEY.digest, scopes=frozenset({Scope.ASK}))],
            PermissionDeniedError,
        ),
        ([replace(KEY, tenant="acme")], UnauthenticatedError),
        ([KEY], None),
    ],
)
def test_a_lease_ends_with_its_key_or_its_scope(
    keys: list[Key], kind: type[WinnowError] | None
) -> None:
    gate, told = Gate([KEY]), list[WinnowError]()
    with gate.lease(KEY, Scope.FEED) as lease:
        lease.on_end(told.append)
        gate.update(keys)
        assert [type(each) for each in told] == ([kind] if kind else [])
        assert (lease.end_error is None) == (kind is None)


def test_a_lease_that_begins_after_its_key_got_another_tenant_has_ended() -> None:
    """The key of a call may change between its admission and its lease."""
    gate = Gate([KEY])
    gate.update([replace(KEY, tenant="acme")])
    with gate.lease(KEY, Scope.FEED) as lease:
        assert isinstance(lease.end_error, UnauthenticatedError)
        assert "now of another tenant" in str(lease.end_error)


def test_a_caller_of_a_tenant_is_not_told_how_busy_others_are() -> None:
    """The rate of the own key is no secret."""
    key = Key(name="alice", digest=KEY.digest, scopes=KEY.scopes, tenant="acme", rate=Rate(1, 1))
    gate = header_gate(Gate([key], ManualClock()))
    headers = (("authorization", f"Bearer {TOKEN}"),)
    gate("ask", headers)
    busy = OverloadedError("57 passages are being stored")
    assert caller.message_of(busy) == "the server is busy: try again"
    with pytest.raises(OverloadedError) as caught:
        gate("ask", headers)
    assert "exceeds its rate" in caller.message_of(caught.value)
    caller.forget()
    assert caller.message_of(busy) == str(busy)


def test_a_closed_lease_is_not_ended() -> None:
    gate = Gate([KEY])
    with gate.lease(KEY, Scope.FEED) as lease:
        pass
    gate.update([])
    assert lease.end_error is None


def test_messages_of_a_lease_wait_for_the_rate() -> None:
    clock = ManualClock()
    gate = Gate([limited(Rate(1, 2))], clock)
    with gate.lease(KEY, Scope.FEED) as lease:
        assert [lease.pause(), lease.pause()] == [0, 0]
        assert lease.pause() == pytest.approx(1.0)
        clock.advance(1.0)
        assert lease.pause() == 0


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (f"Bearer {TOKEN}", TOKEN),
        (f"bearer  {TOKEN} ", TOKEN),
        (TOKEN, ""),
        (f"Basic {TOKEN}", ""),
        (f"Bearer {TOKEN} {TOKEN}", ""),
        ("Bearer é", ""),
        ("Bearer " + "x" * 201, ""),
        ("", ""),
    ],
)
def test_a_token_is_what_follows_bearer(header: str, token: str) -> None:
    assert token_of_headers([("x", "y"), ("authorization", header)]) == token


def test_http_gets_the_same_answers() -> None:
    gate = header_gate(Gate([limited(Rate(1, 5))], ManualClock()))
    headers = (("x-winnow-client", "somebody else"), ("authorization", f"Bearer {TOKEN}"))
    assert gate("ask", headers) == "alice"
    with pytest.raises(PermissionDeniedError):
        gate("admin", headers)
    with pytest.raises(UnauthenticatedError):
        gate("ask", ())
    gate("ask", headers, calls=4)
    with pytest.raises(OverloadedError):
        gate("ask", headers)


def test_all_keys_of_a_tenant_are_one_client() -> None:
    """Otherwise a tenant with many keys would get many turns. Another tenant has its own turns, and
    a key with the name of the tenant, too.
    """
    owners = {"a": "acme", "b": "acme", "c": "bolt", "acme": ""}
    keys = [
        Key(name=name, digest=digest_of(name), scopes=KEY.scopes, tenant=tenant)
        for name, tenant in owners.items()
    ]
    gate = header_gate(Gate(keys))
    over_http, over_grpc = {}, {}
    for name in owners:
        over_http[name] = gate("ask", (("authorization", f"Bearer {name}"),))
        over_grpc[name] = client_key.of_metadata(())
    assert over_http == over_grpc
    assert over_http["a"] == over_http["b"]
    assert len(set(over_http.values())) == 3


def test_metrics_tell_when_the_keys_were_last_those_of_the_file() -> None:
    registry = CollectorRegistry()
    KeyMetrics(registry).watch(lambda: 1_700_000_000.0)
    shown = generate_latest(registry).decode()
    assert "winnow_front_keys_current_timestamp_seconds 1.7e+09" in shown
