"""`python -m specs schemas [-o DIR]`: write the JSON Schemas of all messages."""

import argparse
from pathlib import Path

from specs.json_schema import schema_files

HERE = Path(__file__).parent / "schemas"


def main() -> None:
    """Write one file per schema into a folder."""
    parser = argparse.ArgumentParser(prog="python -m specs", description="The protocol as data.")
    commands = parser.add_subparsers(required=True, metavar="command")
    writing = commands.add_parser(
        "schemas", help="write the JSON Schemas of the envelope and of every body"
    )
    writing.add_argument(
        "-o", "--output", type=Path, default=HERE, metavar="DIR", help="where to [specs/schemas]"
    )
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files().items():
        (folder / name).write_text(text)
        print(folder / name)


if __name__ == "__main__":
    main()
