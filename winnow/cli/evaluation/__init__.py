"""`winnow evaluate`: measures accuracy and latency of a running system."""
