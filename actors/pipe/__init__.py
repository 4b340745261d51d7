"""How a sandbox and whoever keeps it speak: frames over one pipe, and both its ends."""
