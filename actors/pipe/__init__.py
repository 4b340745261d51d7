"""The pipe between a sandbox process and its host: message format, queues, and the host's side."""
