"""Policies that several parts share: pure decisions, without clock, I/O or asyncio.

A policy that only one part uses lies in the folder `policy` of that part.
"""
