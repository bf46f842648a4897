"""Bundles: directories of models with a manifest, which has the checksum of every file."""

from winnow.bundle.bundle import Bundle, load_bundle
from winnow.bundle.manifest import Manifest, read_manifest

__all__ = ["Bundle", "Manifest", "load_bundle", "read_manifest"]
