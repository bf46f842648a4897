"""Stores of heads: all versions of each head, and the record of its served version."""

from winnow.heads.store.file_store import HeadStore, open_store
from winnow.heads.store.records import HeadRecord

__all__ = ["HeadRecord", "HeadStore", "open_store"]
