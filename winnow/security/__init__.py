"""TLS for servers and for channels between nodes, with certificates that may change at runtime."""
