"""Publishing and pulling bundles of models."""
