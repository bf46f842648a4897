"""Moves a shard from one content node to another while it is served and written to.

The receiving node copies the files of the shard from the owner, serves them, and follows the
owner's log. Once it has caught up, it asks the owner to hand the shard over. The owner records that
it takes no more writes. The receiver stores the owner's last writes, and then takes new writes. So
at most one of the two nodes takes writes at any moment, even if one is killed
(`content_node.live.custody`).

A shard that takes no writes, or follows a journal, is only copied.
"""
