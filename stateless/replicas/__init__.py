"""One shard with its replicas: a replica is chosen and called; late calls are hedged, failed ones
retried.
"""
