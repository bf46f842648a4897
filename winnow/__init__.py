"""Winnow's client for programs; everything else is imported from its own room.

    from winnow import Client
    Client("127.0.0.1:8080").ask("Who won the Tour de France in 2015?").answer

Imported when first used, so that a service never loads it.
"""

import os

# before onnxruntime is imported: since 1.29 it keeps a record of every model that is opened in the
# user's cache, and sends it home (https://github.com/microsoft/onnxruntime/pull/27379)
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# before gRPC is imported: else it prints a line for every client that fails to connect over TLS
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# a name that type checkers know; to import it from `typing` would delay the start of every command
TYPE_CHECKING = False

if TYPE_CHECKING:
    from winnow.client import AsyncClient, Client
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import winnow.client  # noqa: PLC0415

        return getattr(winnow.client, name)


__all__ = ["AsyncClient", "Client"]
