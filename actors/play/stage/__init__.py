"""The real actors of a scenario, and all that is done to them from outside."""
