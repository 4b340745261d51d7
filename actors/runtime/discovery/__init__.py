"""Searches of domain registries, and the parts of a runtime that answer its own components."""
