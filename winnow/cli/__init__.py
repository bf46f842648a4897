"""Tools for people at a keyboard: a local cluster, a load test, an evaluation, a Pareto front.

Nothing outside this folder imports them.
"""
