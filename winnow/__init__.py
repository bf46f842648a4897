"""The Python API: clients of front nodes, and indexes that run in the calling process.

    from winnow import Client, Index
    Client("127.0.0.1:8080").ask("Who won the Tour de France in 2015?").answer
    with Index.open("my-index") as index:
        index.ask("Who won the Tour de France in 2015?").answer

Names are imported on first use, so that services do not load the client.
"""

import os

# set before onnxruntime is imported, which since 1.29 reports every opened model to Microsoft
# (https://github.com/microsoft/onnxruntime/pull/27379)
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# set before gRPC is imported, which otherwise logs every client that fails to connect over TLS
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# not imported from `typing`, which would delay the start of every command
TYPE_CHECKING = False

if TYPE_CHECKING:
    from winnow.client import AsyncClient, Client
    from winnow.standalone.index import AsyncIndex, Index
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib  # noqa: PLC0415

        # a client-only installation has no index
        module = "winnow.standalone.index" if name.endswith("Index") else "winnow.client"
        return getattr(importlib.import_module(module), name)


__all__ = ["AsyncClient", "AsyncIndex", "Client", "Index"]
