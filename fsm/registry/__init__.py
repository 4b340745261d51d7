"""Registries: the owner of each address, records of hyperties and objects, searches, look-ups."""
