"""The shards of all indexes of a content node, which calls choose by the id of their index."""

from collections.abc import Iterable

from winnow.content_node.served_shards import ServedShards


class ServedIndexes:
    """The default index of a node, and its named indexes."""

    def __init__(
        self, default: ServedShards, nothing: ServedShards, unopened: ServedShards | None = None
    ) -> None:
        """`default` has the shards of the default index; it may be empty.

        `nothing` never has a shard. `unopened` stands for every index until `expect` names those on
        this disk, and then for each of them until it is added. It has no shard, and its report
        fails. With None, `nothing` stands for them.
        """
        self._default, self._nothing = default, nothing
        self._unopened = unopened if unopened is not None else nothing
        self._is_starting = True
        self._expected: set[str] = set()
        """Ids of the indexes on this disk that are not added yet."""
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
        if self._default.has_index(index_id):
            return self._default
        is_unopened = self._is_starting or index_id in self._expected
        return self._unopened if is_unopened else self._nothing

    def expect(self, index_ids: Iterable[str]) -> None:
        """Makes reports of indexes on this disk fail until they are added.

        Otherwise, the other nodes of an index would take its shards for lost.
        """
        self._is_starting = False
        self._expected.update(index_ids)

    def add(self, index_id: str, shards: ServedShards) -> None:
        """Adds a named index."""
        self._named[index_id] = shards
        self._expected.discard(index_id)

    def remove(self, index_id: str) -> None:
        """Removes a named index: later calls find no shard of it."""
        self._named.pop(index_id, None)
