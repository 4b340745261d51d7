"""The commands `token ...`: keys and login tokens for development."""
