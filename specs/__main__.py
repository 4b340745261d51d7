"""`python -m specs schemas [-o DIR]`: write the JSON Schemas of messages and descriptors."""

import argparse
from pathlib import Path

from specs.json_schema import schema_files

HERE = Path(__file__).parent / "schemas"


def main() -> None:
    """Write one file per schema into a folder; exit with 1 if that cannot be."""
    parser = argparse.ArgumentParser(prog="python -m specs", description="The protocol as data.")
    commands = parser.add_subparsers(required=True, metavar="command")
    writing = commands.add_parser(
        "schemas", help="write the JSON Schemas of the envelope, every body and every descriptor"
    )
    writing.add_argument(
        "-o", "--output", type=Path, default=HERE, metavar="DIR", help="where to [specs/schemas]"
    )
    folder: Path = parser.parse_args().output
    try:
        written = _write(folder)
    except OSError as error:
        why = error.strerror or error
        parser.exit(1, f"protofly: {folder} cannot be written: {why}; name another folder\n")
    print("\n".join(map(str, written)))


def _write(folder: Path) -> list[Path]:
    """Write the files; return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / name: text for name, text in schema_files().items()}
    for path, text in files.items():
        path.write_text(text)
    return list(files)


if __name__ == "__main__":
    main()
