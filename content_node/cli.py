"""`winnow node`."""

from winnow.content_node.settings import NodeSettings
from winnow.settings.command import service_command

node = service_command(NodeSettings, "winnow.content_node.__main__")
