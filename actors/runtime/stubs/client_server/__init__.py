"""Stubs for domains with a plain HTTP server instead of a message node (PFY-05)."""
