"""Tests of applications: domains in memory, faulty links, and a check of what happened.

Install `protofly[testing]`; pytest then has the fixtures of `actors.testing.plugin`.
"""
