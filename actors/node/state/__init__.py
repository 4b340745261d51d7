"""What of a node outlives its process beside the registry: its sessions, and used login tokens."""
