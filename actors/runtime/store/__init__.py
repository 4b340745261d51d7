"""The stored state of a runtime, which survives a restart."""
