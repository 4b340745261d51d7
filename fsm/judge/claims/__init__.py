"""Claims about messages, tables and links, each checked by a function or class on trace records."""
