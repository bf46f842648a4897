"""The HTTP interface of a front node: JSON mirrors of its gRPC calls, over the same cores."""
