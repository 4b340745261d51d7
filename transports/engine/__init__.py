"""Engines: stores that the nodes of one domain share, which also send payloads between nodes.

`contract.Engine` is the interface; `memory` implements it in one process, `nats` by NATS servers.
"""
