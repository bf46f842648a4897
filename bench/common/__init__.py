"""What all benchmarks share: arguments, clusters, quantiles, figures, made-up shards."""
