"""Where a message goes next: routing, open requests, order, duplicates."""
