"""Values of data objects: changes, differences, schemas."""
