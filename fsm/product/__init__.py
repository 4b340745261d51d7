"""The composition check: machines together, over channels that lose and repeat."""
