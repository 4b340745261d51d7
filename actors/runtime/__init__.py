"""The hyperty runtime: buses, registry, loader, stubs, hyperties."""
