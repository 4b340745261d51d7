"""The sync manager: it connects the reporters and the observers of data objects."""
