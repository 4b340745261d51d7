"""The static check of machines, and the census of steps taken."""
