"""Frames between processes, and messages in frames.

`link.Link` is the contract every transport keeps; `network.Network` is the seam
everything above uses. Nothing here knows actors, sessions or state machines.
"""
