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


async def test_a_node_serves_again_once_its_last_unserved_index_was_dropped() -> None:
    """Nothing else would tell Kubernetes that the node serves."""
    told: list[bool] = []

    async def set_serving(serving: bool) -> None:
        told.append(serving)

    health = NodeHealth(set_serving)
    health.add_index("a")
    await health.update()
    assert told == []  # a node that starts is not ready yet
    await health.set_index("a", serving=False)
    health.add_index("b")
    await health.update()
    assert told == [False, True]
    health.remove_index("b")
    await health.set_index("a", serving=False)
    health.remove_index("a")
    await health.update()
    assert told == [False, True, False, True]
