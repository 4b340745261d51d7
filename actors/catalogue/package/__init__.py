"""Signed stub packages: how they are made, sealed, read and opened."""
