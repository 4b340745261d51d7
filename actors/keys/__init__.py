"""Public and private keys: sets of them, files, and what they sign by."""
