"""Children of data objects at both ends."""
