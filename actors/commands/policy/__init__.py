"""The command `policy`: checks and explains policy files."""
