"""Catalogues, in which domains publish signed descriptors of stubs, hyperties and others."""
