"""Where a node's back ends are: files, servers, and what is neither."""

from pathlib import Path

import pytest

from actors.cli.group import ExitCode
from actors.commands.node.fields import back_ends
from tests.support.command import typed


def opened(registry=None, global_registry=None, qos=None, **more):
    rest = dict.fromkeys(["ice", "push_key", "push_contact", "state"])
    rest |= {"push_service": frozenset()} | more
    return back_ends(registry=registry, global_registry=global_registry, qos=qos, **rest)


def test_devices_are_kept_beside_the_state_file(tmp_path):
    key, contact = tmp_path / "push.key", "mailto:ops@a.ex"
    push = opened("r.db", push_key=key, push_contact=contact).push
    assert (push.file, push.contact) == (Path("r.db-state-devices"), contact)
    again = opened(push_key=key, push_contact=contact).push
    assert (again.file, again.key.public()) == (None, push.key.public())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--push-key", "push.key"), "--push-contact"),
        (("--push-key", "none/push.key", "--push-contact", "mailto:a@a.ex"), "--push-key"),
        (("--push-contact", "ops@a.ex"), "neither mailto:... nor https://"),
        (("--push-service", "push.example"), "no origin such as https://push.example"),
        (("--push-service", "https://push.example/x"), "has a path"),
    ],
)
def test_options_by_which_nobody_is_woken_are_refused(options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = typed("node", "--domain", "a.ex", *options)
    assert (ended.status in {ExitCode.USAGE, ExitCode.CONFIGURATION}, ended.out) == (True, [])
    assert said in ended.err[-1]
