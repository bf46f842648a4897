"""Limits the requests to an index with tenants to the tenant of their caller."""
