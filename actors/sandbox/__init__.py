"""The inside of a sandbox: one MiniBUS, one component, and a pipe to the outside."""
