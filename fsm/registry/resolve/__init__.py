"""The route to an address: links, stubs, cached records."""
