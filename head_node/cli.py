"""`winnow heads serve`."""

from head_node.__main__ import run
from head_node.settings import HeadNodeSettings
from winnow.settings import settings_command

serve = settings_command(HeadNodeSettings, run)
