"""Making heads: small models on the states of an encoder that stays as it is."""
