"""Links between a message node and its peers: wire formats, listeners and outbound queues."""
