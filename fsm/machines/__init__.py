"""The machines of the protocol: one file, one table each."""
