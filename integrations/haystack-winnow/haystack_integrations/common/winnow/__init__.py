"""What the Haystack components for Winnow share: the connection."""

from haystack_integrations.common.winnow.connection import WinnowConnection

__all__ = ["WinnowConnection"]
