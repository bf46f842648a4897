"""Buckets of every histogram. In seconds, but for counts and shares.

From 5 to 220 ms, where reads and questions lie, each bound is about one and a half times the one
before (the E6 series of preferred numbers). A quantile, which Prometheus interpolates between two
bounds, is then never off by more than that step. Outside, a rough figure will do. At most 16
bounds: each is a series of every method, stage, shard and status.
"""

_CLOSE = (0.0047, 0.0068, 0.01, 0.015, 0.022, 0.033, 0.047, 0.068, 0.1, 0.15, 0.22)

FAST = (0.00022, 0.001, 0.0022, *_CLOSE, 0.47, 1.0)
SLOW = (0.0022, *_CLOSE, 0.47, 1.0, 2.0, 5.0)
LONG = (0.1, 0.22, 0.47, 1.0, 2.2, 4.7, 10.0, 22.0, 47.0, 100.0, 220.0, 470.0, 1000.0)
COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 400)
SHARES = (0.25, 0.5, 0.75, 0.9, 0.99, 0.999999)
