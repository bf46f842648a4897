"""Keys: who may call a front, what for, and how often. Knows neither gRPC nor HTTP."""
