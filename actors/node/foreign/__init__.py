"""Routes of a node to other domains: their stubs, each in a sandbox."""
