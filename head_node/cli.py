"""`winnow heads serve`."""

from winnow.head_node.__main__ import run
from winnow.head_node.settings import HeadNodeSettings
from winnow.settings.command import settings_command

serve = settings_command(HeadNodeSettings, run)
