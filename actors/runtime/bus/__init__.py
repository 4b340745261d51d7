"""Routing and delivery of messages in a runtime."""
