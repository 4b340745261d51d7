"""Links that carry frames between processes, and the encoding of messages in frames.

`link.Link` is the interface of a link over any transport; `link.Network` opens and accepts links.
This package does not depend on actors, sessions or state machines.
"""
