"""Addresses and their runtimes: records, allocation, changes between registries."""
