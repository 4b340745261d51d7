"""The next hop of a message: routing, open requests, order, duplicates."""
