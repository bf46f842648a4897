"""Files that others must be able to trust: checksums, manifests that vouch, compressed text."""
