"""Haystack reader that finds answers in documents by Winnow."""

from haystack_integrations.common.winnow import WinnowConnection
from haystack_integrations.components.readers.winnow.reader import WinnowReader

__all__ = ["WinnowConnection", "WinnowReader"]
