"""`winnow front`."""

from winnow.settings.command import settings_command
from winnow.stateless.__main__ import run
from winnow.stateless.settings import FrontSettings

front = settings_command(FrontSettings, run)
