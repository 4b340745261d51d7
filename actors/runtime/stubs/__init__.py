"""Protostubs that lead to message nodes, and the loader that deploys them."""
