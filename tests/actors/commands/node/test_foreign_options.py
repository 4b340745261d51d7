"""Options of commands for other domains: `--foreign`, its token file, and the table in a file."""

import pytest

from actors.cli.group import ExitCode
from tests.support.command import typed

NODE = ("node", "--domain", "a.example")
WAY = ("--foreign", "b.example=ws://127.0.0.1:1/link")


@pytest.mark.parametrize(
    "value", ["b.example", "b.example=http://127.0.0.1/link", "b example=ws://h/link", "=ws://h/"]
)
def test_an_invalid_route_is_a_usage_error(value):
    ended = typed(*NODE, "--foreign", value)
    assert ended.status == ExitCode.USAGE
    assert "--foreign" in ended.err[-1]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--foreign", "a.example=ws://127.0.0.1:1/link"), "own domain"),
        (("--foreign-token-file", "b.example=/nowhere"), "add --foreign b.example=URL"),
        ((*WAY, "--foreign-token-file", "c.example=/nowhere"), "add --foreign c.example=URL"),
        ((*WAY, "--foreign-token-file", "b.example=/nowhere"), "token file /nowhere: No such"),
        ((*WAY, "--foreign-token-file", "b.example=/dev/null"), "holds no token"),
    ],
)
def test_contradicting_routes_are_reported_in_one_sentence(options, named):
    ended = typed(*NODE, *options)
    assert ended.status == ExitCode.CONFIGURATION
    assert len(ended.err) == 1
    assert named in ended.err[0]


def test_a_file_of_options_may_have_a_table_of_routes(tmp_path):
    file = tmp_path / "node.toml"
    file.write_text('[node.foreign]\n"b.example" = "http://127.0.0.1/link"\n')
    ended = typed(*NODE, "--config", str(file))
    assert ended.status == ExitCode.CONFIGURATION
    assert "http://127.0.0.1/link" in ended.err[-1]
