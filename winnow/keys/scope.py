"""What a key is good for. Pure."""

from enum import Enum


class Scope(str, Enum):
    """What a caller may do."""

    ASK = "ask"
    """Ask questions."""
    PREDICT = "predict"
    """Apply heads to texts, and list heads."""
    FEED = "feed"
    """Put passages into the index, and take them out."""
    ADMIN = "admin"
    """See the cluster: its nodes, and what they have in hand."""
