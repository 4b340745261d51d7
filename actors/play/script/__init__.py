"""The words and steps of scenario files: read, checked, and what their names mean."""
