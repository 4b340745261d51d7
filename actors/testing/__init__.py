"""Tests of applications: domains in memory, faulty links, and a check of what happened.

Run `pip install '.[testing]'` in a checkout of the repository; pytest then has the fixtures of
`actors.testing.plugin`.
"""
