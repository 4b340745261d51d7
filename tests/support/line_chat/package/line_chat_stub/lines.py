"""The protocol as text: lines in, lines out."""

LONGEST = 65_536


class Lines:
    """Bytes as they come, put together to lines."""

    def __init__(self):
        self._rest = b""

    def feed(self, piece):
        *whole, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LONGEST:
            raise ValueError("a line without an end")
        return [line.decode() for line in whole]


def hello(who):
    return f"HELLO {who}\n".encode()


def say(number, to, text):
    return f"SAY {number} {to} {text}\n".encode()
