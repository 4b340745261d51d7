"""The environment of `python -m actors dev`: nodes, runtimes and reloaded hyperties."""
