"""The bundle whose reader sees question and passage together in every layer."""

from winnow.bundle import default_bundle

WHOLE = default_bundle().parent / "whole"
