"""One of the processes of `node --processes`, started by their parent.

`python -m actors.commands.node.member node OPTIONS` is `python -m actors node OPTIONS` with the
decisions of the parent, which it reads from stdin as one line.
"""

import sys

from actors.__main__ import main
from actors.commands.node.processes import Member

if __name__ == "__main__" and (line := sys.stdin.buffer.readline()):  # or the parent is gone
    main(Member.read(line))
