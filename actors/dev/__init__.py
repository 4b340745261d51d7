"""A node, two runtimes and hyperties that are loaded again when their files change."""
