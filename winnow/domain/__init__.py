"""Plain values of the domain: questions, passages, readings, answers, coverage.

They have no I/O, gRPC or protobuf.
"""
