"""Frames between processes, and messages in frames.

`link.Link` is the contract of every transport; `link.Network` is the interface for the layers
above. Nothing here knows actors, sessions or state machines.
"""
