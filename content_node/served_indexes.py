"""The shards of all indexes of a content node, which calls choose by the id of their index."""

from winnow.content_node.served_shards import ServedShards


class ServedIndexes:
    """The default index of a node, and its named indexes."""

    def __init__(self, default: ServedShards, nothing: ServedShards) -> None:
        """`default` has the shards of the default index; it may be empty.

        `nothing` never has a shard.
        """
        self._default, self._nothing = default, nothing
        self._named: dict[str, ServedShards] = {}
        """The shards of each named index, by the id of the index."""

    def of_index(self, index_id: str) -> ServedShards:
        """Returns the shards of an index; none for an unknown id.

        An empty id stands for the default index, which may be named by its id, too.
        """
        if not index_id:
            return self._default
        if (named := self._named.get(index_id)) is not None:
            return named
        return self._default if self._default.has_index(index_id) else self._nothing

    def add(self, index_id: str, shards: ServedShards) -> None:
        """Adds a named index."""
        self._named[index_id] = shards

    def remove(self, index_id: str) -> None:
        """Removes a named index: later calls find no shard of it."""
        self._named.pop(index_id, None)
