"""What runs inside a sandbox: one MiniBUS, one stub, and a pipe to the outside."""
