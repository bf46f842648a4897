"""Bundles of a checkout beside the default one."""

from winnow.packaged import default_bundle

WHOLE = default_bundle().parent / "whole"
"""The bundle with a full cross-encoder as its reader."""
