"""Machines of data objects: reporting, observing, children."""
