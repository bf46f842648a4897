"""Haystack ranker that orders documents by Winnow."""

from haystack_integrations.common.winnow import WinnowConnection
from haystack_integrations.components.rankers.winnow.ranker import WinnowRanker

__all__ = ["WinnowConnection", "WinnowRanker"]
