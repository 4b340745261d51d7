"""Direct links between two runtimes: set-up, transfer of messages, and end."""
