"""Counts of messages, drops and errors of a process."""
