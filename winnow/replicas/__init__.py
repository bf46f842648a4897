"""A pool of replicas that serve the same: one is chosen and called; late calls are hedged, failed
ones retried, and outliers ejected. Shards, head servers and encoders are called through it.
"""
