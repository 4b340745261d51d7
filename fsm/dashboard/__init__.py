"""What an operator sees of a node while it runs."""
