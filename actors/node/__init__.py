"""The message node of one domain: front door, bus, and its parts."""
