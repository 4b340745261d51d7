"""Stubs of other domains, and the catalogues they are fetched from."""
