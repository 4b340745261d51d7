"""Which stub leads to another domain, and where it is fetched."""
