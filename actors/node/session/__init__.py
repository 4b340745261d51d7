"""Sessions of runtimes at a message node: login, opening, closing."""
