"""Stores of heads: all versions of each, and which one is served."""

from winnow.heads.store.file_store import open_store
from winnow.heads.store.records import Current
from winnow.heads.store.store import HeadStore

__all__ = ["Current", "HeadStore", "open_store"]
