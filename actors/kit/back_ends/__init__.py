"""Services behind HTTP, as nodes and runtimes ask them."""
