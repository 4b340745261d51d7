"""Who talks to whom over which channels, which faults there are, and which properties."""
