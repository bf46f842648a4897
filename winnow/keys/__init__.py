"""API keys: who may call a front node, for what, and how often. Knows neither gRPC nor HTTP."""
