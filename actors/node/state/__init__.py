"""State of a node that outlives its process, besides the registry: sessions and used tokens."""
