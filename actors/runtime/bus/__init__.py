"""Where a message goes next in a runtime."""
