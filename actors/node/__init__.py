"""The message node of one domain: links to runtimes, message bus, sessions, registry and others."""
