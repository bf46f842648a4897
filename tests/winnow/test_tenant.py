"""Stored ids name their tenant, and the tenant decides the shard."""

import pytest

from winnow.domain.partition import Partition, holds
from winnow.domain.shard import shard_of_tenant
from winnow.domain.tenant import (
    ids_problem,
    own_id,
    prefix_of,
    stored_id,
    tenant_of,
    tenant_problem,
)


def test_a_stored_id_tells_its_tenant_and_the_id_of_the_caller() -> None:
    for tenant, own in (("acme", "a/b#1"), ("a.b@c", "é \u2028"), ("", "plain")):
        stored = stored_id(tenant, own)
        assert (tenant_of(stored), own_id(stored)) == (tenant, own)
    assert stored_id("", "plain") == "plain"


def test_the_ids_of_a_tenant_have_a_prefix_that_no_other_id_has() -> None:
    others = [stored_id(tenant, "x") for tenant in ("acme2", "acm", "acme-", "")]
    assert stored_id("acme", "x").startswith(prefix_of("acme"))
    assert not any(each.startswith(prefix_of("acme")) for each in others)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "a\x1fb", "a" * 65, "a\n"])
def test_a_name_of_a_tenant_has_letters_digits_and_few_signs(name: str) -> None:
    assert "is not 1 to 64 letters" in tenant_problem(name)
    assert not tenant_problem("Acme_1".replace("_", "-"))


def test_an_id_fits_an_index_only_if_both_have_tenants_or_both_have_none() -> None:
    assert not ids_problem([stored_id("acme", "x")], has_tenants=True)
    assert not ids_problem(["x"], has_tenants=False)
    assert "names no tenant" in ids_problem([stored_id("acme", "x"), "x"], has_tenants=True)
    for wrong in (stored_id("acme", "x"), "\x1fx"):
        assert "has no tenants" in ids_problem([wrong], has_tenants=False)
    assert "names no tenant" in ids_problem(["a b\x1fx", "\x1fx"], has_tenants=True)


def test_a_tenant_is_on_one_shard_and_a_split_divides_it() -> None:
    ids = [stored_id("acme", f"p{number}") for number in range(400)]
    whole = Partition(8, range(8))
    own = shard_of_tenant("acme", 8)
    assert {whole.shard_of(each) for each in ids} == {own}
    assert whole.shards_of_tenant("acme") == [own]
    split = whole.split(own)
    halves = split.shards_of_tenant("acme")
    assert len(halves) == 2
    counts = [sum(split.shard_of(each) == half for each in ids) for half in halves]
    assert sum(counts) == 400
    assert min(counts) > 150
    assert all(holds(split.shard_of(each), 8, each) for each in ids)
    assert whole.shards_of_tenant("") == list(range(8))
