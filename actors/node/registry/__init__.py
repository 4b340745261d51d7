"""The domain registry and the address allocation of a message node."""
