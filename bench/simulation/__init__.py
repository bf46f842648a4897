"""A cluster as events: how long questions take over up to a thousand shards.

Fronts and nodes are queues with the measured unit costs (`winnow bench units`). Which replica is
asked, when a call is hedged and how long a late shard is waited for is decided by the policies of
`stateless/policy`, the same code that a front runs. Nodes may be slow here, but never fail.
"""
