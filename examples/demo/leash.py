"""Run a command until it ends, or until stdin does: whoever holds the other end has gone then.

python -m examples.demo.leash COMMAND ...
"""

import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    """Run the command of the command line; return its exit status, as a shell does."""
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)

    def wait_for_end() -> None:
        os.read(0, 1)  # not `sys.stdin`, whose lock would be held at the end
        command.send_signal(signal.SIGTERM)

    threading.Thread(target=wait_for_end, daemon=True).start()
    status = command.wait()
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main())
