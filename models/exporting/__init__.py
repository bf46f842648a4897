"""Checkpoints that others trained, in the Hugging Face layout, exported as bundles."""
