"""The services of shards, for content nodes and for fronts that serve shards to other fronts."""
