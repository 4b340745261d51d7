"""Data objects that converge: the reporter's writes and the observers' copies."""
