"""Actors: a mailbox, a task, a supervisor above it, and a trace."""
