"""Memory of content nodes under questions, writes and merges for a long time."""
