"""Login: the identity connector, the tokens it takes, and the keys that verify them."""
