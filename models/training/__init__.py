"""Learning: what is seen, what is asked of it, step by step."""
