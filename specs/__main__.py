"""`python -m specs`: write the protocol as data of other languages.

`schemas` writes the JSON Schemas of messages and descriptors, `constants` the limits and words of
the protocol as an ES module.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from specs.json_schema import schema_files
from specs.schema.javascript import constants

HERE = Path(__file__).parent / "schemas"


def main() -> None:
    """Write the schemas, or the module of constants, into a folder; exit with 1 if that fails."""
    parser = argparse.ArgumentParser(prog="python -m specs", description="The protocol as data.")
    commands = parser.add_subparsers(required=True, metavar="command")
    _command(
        commands.add_parser(
            "schemas",
            help="write the JSON Schemas of the envelope, every body and every descriptor",
        ),
        schema_files,
        HERE,
    )
    _command(
        commands.add_parser(
            "constants", help="write limits, reply codes and words as an ES module, constants.js"
        ),
        lambda: {"constants.js": constants()},
        Path(),
    )
    options = parser.parse_args()
    folder: Path = options.output
    try:
        written = _write(folder, options.files())
    except OSError as error:
        why = error.strerror or error
        parser.exit(1, f"protofly: {folder} cannot be written: {why}; name another folder\n")
    print("\n".join(map(str, written)))


def _command(
    parser: argparse.ArgumentParser, files: Callable[[], Mapping[str, str]], default: Path
) -> None:
    where = f"where to [{default.name or 'here'}]"
    parser.add_argument("-o", "--output", type=Path, default=default, metavar="DIR", help=where)
    parser.set_defaults(files=files)


def _write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the files and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / name: text for name, text in texts.items()}
    for path, text in files.items():
        path.write_text(text)
    return list(files)


if __name__ == "__main__":
    main()
