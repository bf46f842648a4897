"""Reads positive numbers from the command line."""

import argparse


def positive(text: str) -> int:
    """Reads a positive number. Raises ArgumentTypeError for another text."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a positive number, not {text}")
    return int(text)
