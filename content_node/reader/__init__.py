"""Reading passages: prepare, run, decode, score."""

from content_node.reader.reader import Reader, open_reader

__all__ = ["Reader", "open_reader"]
