"""Addresses of the protocol, and hosts."""
