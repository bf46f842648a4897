"""Exits 0 if the node of this container serves, 1 if it does not.

Asks gRPC health for the server as a whole, which is SERVING only after loading, verification and
warm-up, and no longer once it drains. Knows the address from the variable that the node reads.
"""

import os
import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.address import Address

_VARIABLES = (
    # in plain text, also where the others use TLS
    "WINNOW_FRONT_HEALTH_LISTEN",
    "WINNOW_NODE_HEALTH_LISTEN",
    "WINNOW_ENCODER_HEALTH_LISTEN",
    "WINNOW_HEADS_HEALTH_LISTEN",
    "WINNOW_FRONT_LISTEN",
    "WINNOW_NODE_LISTEN",
    "WINNOW_ENCODER_LISTEN",
    "WINNOW_HEADS_LISTEN",
)
_SECONDS = 2.0


def main() -> int:
    """Asks once; returns the exit code."""
    listen = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")
    if not listen:
        print(f"set one of {', '.join(_VARIABLES)}", file=sys.stderr)
        return 1
    # a server on all addresses is asked on loopback
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
