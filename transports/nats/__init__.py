"""A client of NATS on Trio: lines, connections, requests, subscriptions.

Nothing here knows rows; `transports.engine.nats` does.
"""
