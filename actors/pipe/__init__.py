"""The pipe between a sandbox and its host: its frames, and both its ends."""
