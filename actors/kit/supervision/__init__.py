"""Actors, their mailboxes, and the supervisors that start and restart them."""
