"""Descriptors of other domains: whether they are trusted, and their stubs."""
