"""Folders of traces by others: endless lines, and links to what is none of theirs."""

import gzip
import json
import os
from pathlib import Path

from tests.support.trace.trace_files import records, session, whole, write_trace

LONG = 48 << 20
"""Bytes of a line without an end."""

GOOD = "run=r1/node=alice"


def write_good(place: Path) -> None:
    write_trace(place / GOOD, records(whole(session("open", "closed"))))


def write_endless(place: Path, *, is_packed: bool) -> Path:
    """A folder with a good trace, and a part of one line that does not end."""
    write_good(place)
    part = place / GOOD / ("part-00001.jsonl.gz" if is_packed else "part-00001.jsonl")
    with gzip.open(part, "wb", 1) if is_packed else part.open("wb") as file:
        for _ in range(LONG >> 20):
            file.write(b"x" * (1 << 20))
        file.write(b"\n{}\n")
    return part


def write_links(place: Path, elsewhere: Path) -> None:
    """A folder with a good trace, and links to a file and to a folder of others, and a pipe."""
    write_good(place)
    secret = elsewhere / "run=r2" / "node=bob" / "part-00000.jsonl"
    secret.parent.mkdir(parents=True)
    secret.write_text(json.dumps({"password": "secret"}) + "\n")
    (place / GOOD / "part-00001.jsonl").symlink_to(secret)
    (place / "run=r2").symlink_to(elsewhere / "run=r2")
    os.mkfifo(place / GOOD / "part-00002.jsonl")
