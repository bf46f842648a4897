"""Pools of interchangeable replicas: each request goes to one of them.

Late calls are hedged, failed calls are retried, and outliers ejected. Shards, head servers and
encoders are called through pools.
"""
