"""The life of a direct link between two runtimes."""
