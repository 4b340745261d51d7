"""The sync manager: reporters and observers meet through it."""
