"""URIs of documents and passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from winnow.mcp.uris import ResourceKind, ResourceName, resource_of_uri

NAMES = some.text(some.characters(exclude_categories=["Cs"]), min_size=1)


@given(some.sampled_from(ResourceKind), NAMES, some.integers(0, 999_999_999))
def test_a_uri_names_its_resource(kind: ResourceKind, name: str, start: int) -> None:
    resource = ResourceName(kind, name, start)
    assert resource_of_uri(resource.uri) == resource
    assert resource.uri.isascii()


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "policy.pdf",
        "https://example.org/policy.pdf",
        "winnow://documents/",
        "winnow://shards/0",
        "winnow://documents/policy.pdf?start=x",
        "winnow://documents/policy.pdf?page=2",
    ],
)
def test_other_texts_name_no_resource(uri: str) -> None:
    assert resource_of_uri(uri) is None
