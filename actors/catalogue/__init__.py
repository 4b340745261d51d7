"""Catalogues of descriptors: their sources, verification and publishing."""
