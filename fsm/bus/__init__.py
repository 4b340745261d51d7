"""Message routing: listeners, next hops, open requests, message order, duplicates, large bodies."""
