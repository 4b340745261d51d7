"""Ways in which traces on a disk get damaged, and what each of them removes.

Each takes a directory of runs that is whole and a source of chance, damages the directory, and
returns whose records it removed: run and node of each; empty: all records are still there.
"""

import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from fsm.judge.trace_line import TraceLine, wire_name
from specs.trace import trace_folder, writer_of
from tests.support.trace.trace_files import write_trace

Lost = set[tuple[str, str]]

PART = 40
"""Records of a part."""


def write_whole(directory: Path, lines: Iterable[TraceLine]) -> None:
    """Write the records of processes in parts, as the processes would have written them."""
    by_process: dict[tuple[str, str], list[dict[str, object]]] = {}
    for line in lines:
        reported = {wire_name(name): value for name, value in attrs.asdict(line).items()}
        there = {name: value for name, value in reported.items() if value is not None}
        by_process.setdefault((line.run, line.node), []).append(there | {"mono_ns": 0})
    for process, reported in by_process.items():
        for part in range(0, len(reported), PART):
            write_trace(
                directory / trace_folder(*process), reported[part : part + PART], part // PART
            )


def _parts(directory: Path) -> list[Path]:
    return sorted(directory.rglob("part-*.jsonl"))


def _owner(part: Path) -> tuple[str, str]:
    owner = writer_of(str(part))
    assert owner is not None
    return owner


def drop_process(directory: Path, dice: random.Random) -> Lost:
    folder = dice.choice(_parts(directory)).parent
    lost = {_owner(part) for part in folder.iterdir()}
    shutil.rmtree(folder)
    return lost


def drop_part(directory: Path, dice: random.Random) -> Lost:
    part = dice.choice(_parts(directory))
    part.unlink()
    return {_owner(part)}


def drop_lines(directory: Path, dice: random.Random) -> Lost:
    part = dice.choice(_parts(directory))
    lines = part.read_text().splitlines(keepends=True)
    gone = set(dice.sample(range(len(lines)), dice.randint(1, len(lines))))
    part.write_text("".join(line for at, line in enumerate(lines) if at not in gone))
    return {_owner(part)}


def truncate(directory: Path, dice: random.Random) -> Lost:
    part = dice.choice(_parts(directory))
    data = part.read_bytes()
    # A newline at the end is no record.
    part.write_bytes(data[: dice.randrange(len(data) - 1)])
    return {_owner(part)}


def garble(directory: Path, dice: random.Random) -> Lost:
    part = dice.choice(_parts(directory))
    data = bytearray(part.read_bytes())
    start = dice.randrange(len(data))
    data[start : start + 20] = b"\xff" * len(data[start : start + 20])
    part.write_bytes(data)
    return {_owner(part)}


def duplicate_part(directory: Path, dice: random.Random) -> Lost:
    part = dice.choice(_parts(directory))
    shutil.copy(part, part.with_name(f"part-{dice.randrange(90000, 99999)}.jsonl"))
    return {_owner(part)}


def duplicate_lines(directory: Path, dice: random.Random) -> Lost:
    part = dice.choice(_parts(directory))
    lines = part.read_text().splitlines(keepends=True)
    part.write_text("".join(lines + dice.sample(lines, dice.randint(1, len(lines)))))
    return {_owner(part)}


def rename_part(directory: Path, dice: random.Random) -> Lost:
    part = dice.choice(_parts(directory))
    part.rename(part.with_name(f"part-{dice.randrange(90000, 99999)}.jsonl"))
    return set()


def rename_folder(directory: Path, dice: random.Random) -> Lost:
    folder = dice.choice(_parts(directory)).parent
    folder.rename(folder.with_name(f"node={dice.choice(['other', 'a%20b', 'x'])}-1"))
    return set()


def rename_run(directory: Path, dice: random.Random) -> Lost:
    folder = dice.choice(_parts(directory)).parent.parent
    folder.rename(folder.with_name("run=0"))
    return set()


def swap_parts(directory: Path, dice: random.Random) -> Lost:
    parts = list(dice.choice(_parts(directory)).parent.iterdir())
    one, other = dice.choice(parts), dice.choice(parts)
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)
    return set()


def hide_part(directory: Path, dice: random.Random) -> Lost:
    part = dice.choice(_parts(directory))
    part.rename(part.with_suffix(".bak"))
    return {_owner(part)}


DAMAGES: tuple[Callable[[Path, random.Random], Lost], ...] = (
    drop_process, drop_part, drop_lines, truncate, garble, duplicate_part, duplicate_lines,
    rename_part, rename_folder, rename_run, swap_parts, hide_part,
)  # fmt: skip
