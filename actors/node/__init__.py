"""The message node of one domain: acceptor, bus, and its parts."""
