"""Numbers of things, as people write them."""

import pytest

from winnow.quoting import are, many, were


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 shards"), (1, "1 shard"), (2, "2 shards"), (1_000, "1,000 shards")]
)
def test_one_thing_is_singular_and_thousands_are_grouped(count: int, said: str) -> None:
    assert many(count, "shard") == said


def test_the_verb_goes_with_the_number() -> None:
    assert (are(1, "text"), are(2, "text")) == ("1 text is", "2 texts are")
    assert (were(1, "text"), were(0, "text")) == ("1 text was", "0 texts were")
