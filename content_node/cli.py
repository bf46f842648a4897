"""`winnow node`."""

from winnow.content_node.__main__ import run
from winnow.content_node.settings import NodeSettings
from winnow.settings.command import settings_command

node = settings_command(NodeSettings, run)
