"""The file of the quotas of tenants."""
