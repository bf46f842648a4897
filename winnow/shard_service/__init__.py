"""The gRPC services of shards. Content nodes serve them, and fronts that serve other fronts."""
