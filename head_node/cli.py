"""`winnow heads serve`."""

from winnow.head_node.settings import HeadNodeSettings
from winnow.settings.command import service_command

serve = service_command(HeadNodeSettings, "winnow.head_node.__main__")
