"""Reading passages: prepare, run, decode, score."""

from winnow.content_node.reader.reader import Reader, check_lengths, open_reader

__all__ = ["Reader", "check_lengths", "open_reader"]
