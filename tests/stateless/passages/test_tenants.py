"""The tenants of an index, from the pages of its shards."""

import pytest
from passage_front import PassageFront
from tenacious import LATER

from winnow.domain.passage_request import TenantsRequest
from winnow.domain.tenant import stored_id
from winnow.errors import InvalidRequestError

PASSAGES = {f"t{number:02}": 1 + number % 4 for number in range(40)}


def fed(front: PassageFront) -> PassageFront:
    for tenant, passages in PASSAGES.items():
        for number in range(passages):
            front.put(stored_id(tenant, f"p{number}"))
    return front


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("page_limit", [2, 1_000])
async def test_each_tenant_is_listed_once_with_the_passages_of_all_parts(
    size: int, page_limit: int
) -> None:
    """Of a shard that was split, too, and although shards return short pages."""
    front = fed(PassageFront(2))
    front.show(front.partition.split(0).split(2).shards)
    for shard in front.shards.values():
        shard.page_limit = page_limit
    found: dict[str, int] = {}
    token = "first"
    while token:
        request = TenantsRequest(page_size=size, page_token="" if token == "first" else token)
        page = await front.core.tenants(request, LATER)
        assert 1 <= len(page.tenants) <= size
        assert not found.keys() & {each.name for each in page.tenants}
        found |= {each.name: each.passages for each in page.tenants}
        token = page.next_page_token
    assert list(found.items()) == list(PASSAGES.items())


async def test_a_token_of_another_list_is_refused() -> None:
    front = fed(PassageFront(2))
    _, token = await front.page(1)
    with pytest.raises(InvalidRequestError, match="page_token"):
        await front.core.tenants(TenantsRequest(page_token=token), LATER)
