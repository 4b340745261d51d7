"""The runtime that executes hyperties: message buses, registry, stub loader and protostubs."""
