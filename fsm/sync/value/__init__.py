"""Values of data objects: how they change, differ, and obey schemas."""
