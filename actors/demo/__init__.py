"""The demonstration: three processes that show the protocol at work."""
