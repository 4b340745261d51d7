"""For tests of applications: domains in memory, links in chaos, and a judge of what happened.

Install `protofly[testing]`; pytest then knows the fixtures of `actors.testing.plugin`.
"""
