"""Merges base and log of a shard into its next generation, in a child process, and swaps it in."""
