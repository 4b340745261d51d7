"""The commands `stub ...`: descriptors by which other domains reach this one."""
