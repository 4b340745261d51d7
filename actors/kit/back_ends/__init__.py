"""Clients of registries and other services behind HTTP, for nodes and runtimes."""
