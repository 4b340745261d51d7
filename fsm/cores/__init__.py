"""The deciders: `feed(input, now)` gives effects; no input or output of their own."""
