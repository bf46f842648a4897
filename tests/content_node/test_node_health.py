"""The health of a node with several indexes."""

from winnow.content_node.composing.catalog import NodeHealth


async def test_a_node_serves_while_any_of_its_indexes_does() -> None:
    """An index whose files changed does not end the service of the others."""
    told: list[bool] = []

    async def set_serving(serving: bool) -> None:
        told.append(serving)

    health = NodeHealth(set_serving)
    health.add_index("a")
    health.add_index("b")
    await health.set_index("a", serving=False)
    health.remove_index("b")
    await health.set_index("a", serving=False)
    await health.set_index("a", serving=True)
    assert told == [True, False, True]
