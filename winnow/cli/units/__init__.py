"""`winnow bench units`: measures what the parts of a cluster cost on this machine."""
