"""Subscriptions of data objects at a message node, and consent."""
