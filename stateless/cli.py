"""`winnow front`."""

from winnow.settings.command import service_command
from winnow.stateless.settings import FrontSettings

front = service_command(FrontSettings, "winnow.stateless.__main__")
