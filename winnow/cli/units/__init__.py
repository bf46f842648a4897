"""`winnow bench unit-costs`: measures what the parts of a cluster cost on this machine."""
