"""Encoding by workers: processes of their own, on this machine or on others, that Ray runs."""
