"""The composition check: real cores together, over channels that lose and repeat."""
