"""Links of a message node: wire forms, ports, outboxes."""
