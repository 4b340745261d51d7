"""Machines of data objects: reporting, observing, children, and hand-over."""
