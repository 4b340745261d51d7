"""How data objects converge: reporters, observers, delegation."""
