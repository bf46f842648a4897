"""Exits 0 if the node of this container serves, 1 if it does not.

Calls gRPC health for the whole server, which is SERVING from the end of loading, verification and
warm-up until it drains. Takes the address from the environment variable that the node reads.
"""

import os
import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.address import Address

_VARIABLES = (
    # health ports use plain text, even if the other ports use TLS
    "WINNOW_FRONT_HEALTH_LISTEN",
    "WINNOW_NODE_HEALTH_LISTEN",
    "WINNOW_ENCODER_HEALTH_LISTEN",
    "WINNOW_HEADS_HEALTH_LISTEN",
    "WINNOW_READER_HEALTH_LISTEN",
    "WINNOW_FRONT_LISTEN",
    "WINNOW_NODE_LISTEN",
    "WINNOW_ENCODER_LISTEN",
    "WINNOW_HEADS_LISTEN",
    "WINNOW_READER_LISTEN",
)
_SECONDS = 2.0


def main() -> int:
    """Checks health once; returns the exit code."""
    listen = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")
    if not listen:
        print(f"no address to check: set one of {', '.join(_VARIABLES)}", file=sys.stderr)
        return 1
    # a server that listens on all addresses is reachable on loopback
    with grpc.insecure_channel(str(Address.parse(listen).reachable)) as channel:
        try:
            reply = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=_SECONDS
            )
        except grpc.RpcError as error:
            print(error.code().name, file=sys.stderr)
            return 1
    status = health_pb2.HealthCheckResponse.ServingStatus
    print(status.Name(reply.status))
    return 0 if reply.status == status.SERVING else 1


if __name__ == "__main__":
    sys.exit(main())
