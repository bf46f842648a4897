"""Haystack retriever for an index of Winnow."""

from haystack_integrations.common.winnow import WinnowConnection
from haystack_integrations.components.retrievers.winnow.retriever import WinnowRetriever

__all__ = ["WinnowConnection", "WinnowRetriever"]
