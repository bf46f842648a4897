"""One shard with its replicas: chosen, called, hedged, retried."""
