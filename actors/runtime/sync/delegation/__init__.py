"""Data objects that are handed over to another reporter."""
