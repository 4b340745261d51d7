"""Files that are served to browsers; no code of Python."""
