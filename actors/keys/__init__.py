"""Public and private keys for signatures: key files, sets of keys, tokens and certificates."""
