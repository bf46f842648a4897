"""Reads passages: builds windows, runs the model, decodes spans and scores them."""

from winnow.reading.reader import Reader, check_lengths, open_reader

__all__ = ["Reader", "check_lengths", "open_reader"]
