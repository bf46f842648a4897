"""What the Haystack components for Winnow share."""

from haystack_integrations.common.winnow.connection import ConnectedComponent, WinnowConnection

__all__ = ["ConnectedComponent", "WinnowConnection"]
