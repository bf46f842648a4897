"""Predictions: small models, called heads, on the token states of an encoder."""
