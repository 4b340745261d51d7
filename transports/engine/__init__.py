"""The store that the nodes of one domain share: rows, leases, watches, payloads between nodes.

`contract.Engine` is the contract; `memory` keeps it in one process.
"""
