"""Addresses and routes: registry and address allocation of a runtime."""
