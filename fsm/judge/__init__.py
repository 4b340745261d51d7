"""The reference judge of a trace: machines, messages, tables and links."""
