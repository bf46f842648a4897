"""The client for Python programs. Other parts are imported from their own modules.

    from winnow import Client
    Client("127.0.0.1:8080").ask("Who won the Tour de France in 2015?").answer

The client is imported on first use, so services do not load it.
"""

import os

# set before onnxruntime is imported: since 1.29 it records every opened model and reports it to
# Microsoft (https://github.com/microsoft/onnxruntime/pull/27379)
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# set before gRPC is imported, which otherwise logs every client that fails to connect over TLS
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# not imported from `typing`, which would delay the start of every command
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
