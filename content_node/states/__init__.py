"""What the lower layers of a reader make of passages, computed beforehand."""
