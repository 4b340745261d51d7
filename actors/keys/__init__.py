"""Public and private keys: sets, files, and signatures."""
