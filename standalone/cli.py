"""`winnow standalone`."""

from winnow.settings.command import service_command
from winnow.standalone.settings import StandaloneSettings

standalone = service_command(StandaloneSettings, "winnow.standalone.__main__")
