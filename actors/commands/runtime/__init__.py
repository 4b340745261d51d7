"""The command `runtime`: its options, and the hyperties that it runs."""
