"""TLS between all parts: certificates that are read again, servers and channels that use them."""
