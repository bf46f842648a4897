"""`winnow standalone`."""

from winnow.settings.command import settings_command
from winnow.standalone.__main__ import run
from winnow.standalone.settings import StandaloneSettings

standalone = settings_command(StandaloneSettings, run)
