"""Pools of interchangeable replicas: each request goes to one replica.

Late calls are hedged, failed calls are retried, and outliers are ejected. The front node calls
shards, head servers and encoders through pools.
"""
