"""Policies of the front node: pure decisions, without clock, I/O or asyncio."""
