"""Files: checksums, durable writes, locks, changes, compressed text and stored arrays."""
