"""Login: the identity connector, its providers, and the keys that verify tokens."""
