"""Where a message goes next in a message node."""
