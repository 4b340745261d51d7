"""Lines of one run, as they come."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import trio

from tests.golden.form import Ids, Lines, Part, message_text, settled, subject_of
from transports.codec import BadLine, decode_frame
from transports.link import Link


class Notes:
    """Lines of one run, as they come."""

    def __init__(self) -> None:
        self.ids = Ids()
        self._part: defaultdict[str, defaultdict[str, Lines]] = defaultdict(_no_lines)

    def add(self, grade: str, subject: str, line: str, at: float = 0.0) -> None:
        """Add a line.

        Args:
            grade: One of `GRADES`.
            subject: What the line is about; lines of one subject stay in order.
            at: Seconds of virtual time.
        """
        self._part[grade][subject].append((round(at * 1000), line))

    def add_core(self, subject: str, line: str) -> None:
        """Add a line of a core."""
        self.add("cores", subject, line, trio.current_time())

    def add_frame(self, link: str, frame: bytes) -> None:
        """Add the messages of a frame that is sent."""
        for message in decode_frame(frame):
            if not isinstance(message, BadLine):  # else it is a sign between the ends of a link
                line = message_text(message, self.ids)
                self.add("links", f"{link} | {subject_of(message)}", line, trio.current_time())

    def part(self) -> Part:
        """Return all of it."""
        ranked = self.ids.ranked({grade: dict(of) for grade, of in self._part.items()})
        return {
            grade: {subject: settled(grade, subject, lines) for subject, lines in of.items()}
            for grade, of in ranked.items()
        }


def _no_lines() -> defaultdict[str, Lines]:
    return defaultdict(list)


@contextmanager
def noted_frames(notes: Notes, kind: type[Link], ends_of: Callable[[Link], str]) -> Iterator[None]:
    """Note the frames that each end of a link of a class sends, while the context is open."""
    send, write = kind.send_many, kind.write_now
    links: dict[int, tuple[Link, str]] = {}
    counts = Counter[str]()

    def note(link: Link, frames: Sequence[bytes]) -> None:
        if id(link) not in links:
            ends = ends_of(link)
            counts[ends] += 1
            links[id(link)] = link, f"{ends} {counts[ends]}"
        for frame in frames:
            notes.add_frame(links[id(link)][1], frame)

    async def send_many(link: Link, frames: Sequence[bytes]) -> None:
        note(link, frames)
        await send(link, frames)

    def write_now(link: Link, frames: Sequence[bytes]) -> bool:
        note(link, frames)
        return write(link, frames)

    kind.send_many, kind.write_now = send_many, write_now
    try:
        yield
    finally:
        kind.send_many, kind.write_now = send, write
