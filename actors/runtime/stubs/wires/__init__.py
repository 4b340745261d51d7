"""Wire forms that a node stub speaks."""
