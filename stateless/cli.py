"""`winnow front` and `winnow reader`."""

from winnow.settings.command import service_command
from winnow.stateless.reading.server_settings import ReaderSettings
from winnow.stateless.settings import FrontSettings

front = service_command(FrontSettings, "winnow.stateless.__main__")
reader = service_command(ReaderSettings, "winnow.stateless.reading.__main__")
