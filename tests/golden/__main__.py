"""`python -m tests.golden`: recordings of what the product does, made, checked and shown.

    record [NAME ...]   run parts anew, and keep what they do; without a name all
    check [NAME ...]    run parts anew, and show in what they differ from their recordings
    show NAME           print a recording
    list                names of all parts

A name may be a pattern, as `seed-group-*` or `scenario-*`. `--grades users,links` takes these
grades only, `--jobs 2` two processes. Exit code 1: something differs.
"""

import argparse
import logging
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from functools import partial

from fsm.commands.judge import progress_of
from tests.golden.difference import differences, report
from tests.golden.form import GRADES, Part
from tests.golden.store import PARTS, read_part, recorded_parts, write_part


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("record", "check", "show", "list"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--grades", type=_grades, default=GRADES, metavar="GRADE,...")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_intermixed_args()
    logging.getLogger("actors").setLevel(logging.CRITICAL)
    known = recorded_parts() if given.what in {"check", "show"} else list(PARTS)
    names = [one for one in known if _is_meant(one, given.names)]
    if not names:
        parser.error("no part has such a name; `list` prints all")
    match given.what:
        case "list":
            print("\n".join(names))
            return 0
        case "show":
            return _show(names, given.grades)
        case "record":
            return _each(partial(_record, grades=given.grades), names, given.jobs)
        case _:
            return _each(partial(_check, grades=given.grades), names, given.jobs)


def _grades(text: str) -> tuple[str, ...]:
    grades = tuple(text.split(","))
    if unknown := set(grades) - set(GRADES):
        raise argparse.ArgumentTypeError(f"{min(unknown)} is none of {', '.join(GRADES)}")
    return grades


def _is_meant(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, one) for one in patterns)


def _each(work: Callable[[str], str], names: Sequence[str], jobs: int) -> int:
    """Do something with each part; print what it says, and return whether it says anything."""
    code = 0
    with ProcessPoolExecutor(jobs) as pool, progress_of("parts", len(names)) as progress:
        for number, text in enumerate(pool.map(work, names), start=1):
            progress.set(number, len(names))
            if text:
                progress.clear()
                print(text, flush=True)
                code = 1
    return code


def _record(name: str, grades: Sequence[str]) -> str:
    now = PARTS[name]()
    if set(grades) != set(GRADES):
        kept = read_part(name) if name in recorded_parts() else {}
        now = kept | {grade: of for grade, of in now.items() if grade in grades}
    write_part(name, now)
    return ""


def _check(name: str, grades: Sequence[str]) -> str:
    found = differences(read_part(name), PARTS[name](), grades)
    return report(name, found, math.inf) if found else ""


def _show(names: Sequence[str], grades: Sequence[str]) -> int:
    for name in names:
        part: Part = read_part(name)
        for grade in (one for one in grades if one in part):
            for subject, lines in part[grade].items():
                print(f"{name} | {grade} | {subject}")
                for at, line in lines:
                    print(f"{at / 1000:12.3f}  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
