"""Plain values of the domain: questions, passages, readings, answers, coverage.

The package does no I/O, and uses neither gRPC nor protobuf.
"""
