"""The development environment of `python -m actors dev`: node, runtimes, and reloaded hyperties."""
