"""Data objects in the form in which applications use them."""
