"""A module that cannot be imported, though it is there."""

raise ValueError("this module is broken")
