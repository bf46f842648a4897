"""The HTTP interface of a front node: its gRPC calls as JSON over HTTP, with the same cores."""
