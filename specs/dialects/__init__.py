"""Conversion of messages between the normal form and the spellings of older implementations."""
