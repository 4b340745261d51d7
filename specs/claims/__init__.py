"""The catalogue of claims, in words."""
