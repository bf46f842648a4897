"""What Winnow talks about: questions, passages, readings, answers, coverage.

Plain values without I/O, gRPC or protobuf.
"""
