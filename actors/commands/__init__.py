"""The commands of `python -m actors`, one module each, imported when called."""
