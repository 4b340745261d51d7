"""Who is where, and by which way: registry and address allocation of a runtime."""
