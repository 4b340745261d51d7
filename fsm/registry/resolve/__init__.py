"""Look-up of the route to an address: cached registry records, stubs, direct links."""
