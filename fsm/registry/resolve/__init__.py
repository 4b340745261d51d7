"""By which way an address is reached: links, stubs, cached records."""
