"""The bundle with a full cross-encoder as its reader."""

from winnow.packaged import default_bundle

WHOLE = default_bundle().parent / "whole"
