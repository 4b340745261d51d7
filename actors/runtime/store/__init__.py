"""What a runtime stores, to find it after a restart."""
