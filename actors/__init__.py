"""What does: actors under supervision, the runtime, the message node, the commands.

`actors.kit` is what an actor is; `actors.runtime` and `actors.node` are built of
it and meet only on the wire; `actors.commands` are the words a shell knows.
"""
