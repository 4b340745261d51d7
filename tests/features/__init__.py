"""The features of the protocol, what shows each, and what happens if one is removed."""
