"""What a data object has outside of its reporter: address, paths, record."""
