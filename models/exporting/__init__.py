"""Exports third-party checkpoints in the Hugging Face layout as bundles."""
