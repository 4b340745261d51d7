"""Catalogues of descriptors: where they are read, how they are verified, how they are made."""
