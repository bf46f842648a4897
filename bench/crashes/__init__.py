"""Is every acknowledged write there after kill -9, and nothing half? `python -m bench.crashes`."""
