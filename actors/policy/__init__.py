"""The policy engine that nodes and runtimes share: files, decisions, obligations, management."""
