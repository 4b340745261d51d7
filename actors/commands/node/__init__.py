"""The command `node`: one file of options for each topic."""
