"""The numbers of sessions over HTTP (CON-06)."""

from typing import Final

REST_CONNECTIONS: Final = 4096
"""HTTP connections at once to a node that has sessions over HTTP: two for each of them, one to
ask and one to tell (ours: as many sessions as STRANGERS)."""

REST_PER_HOST: Final = 1024
"""Of these, from one host (ours: a quarter)."""

REST_CURSOR_WAIT: Final = 1.0
"""Seconds an event stream waits to hear that what it brought was read; then it ends, and who
opens it anew says so (ours)."""

REST_RETRY: Final = 100
"""Milliseconds after which a browser opens an event stream again that has ended (ours)."""

REST_POSTS: Final = 4
"""Posts of one session that wait to be taken in (ours: one, and some that were given up)."""
