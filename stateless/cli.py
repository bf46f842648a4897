"""`winnow front`."""

from stateless.__main__ import run
from stateless.settings import FrontSettings
from winnow.settings import settings_command

front = settings_command(FrontSettings, run)
