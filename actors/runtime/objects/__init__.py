"""Data objects as an application holds them."""
