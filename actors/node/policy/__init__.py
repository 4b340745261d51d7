"""The policy engine of a message node: source, enforcement and management of its policies."""
