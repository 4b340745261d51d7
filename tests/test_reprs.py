"""Fields that may have a secret are in no repr: exceptions and logs show these."""

import ast
from pathlib import Path

import actors
from specs.message import Message, MessageType
from transports.memory import MemoryNetwork

ROOT = Path(__file__).parents[1]
PACKAGES = ("actors", "fsm", "specs", "transports")
SECRETS = {"token", "secret", "assertion", "refresh", "password", "private"}
ELSEWHERE = {"fsm/explore"}
"""Scenarios and models have no secrets."""

TEXTS = {"str", "bytes", "str | None", "bytes | None"}


def is_hidden(field):
    """Say whether a field is `attrs.field(..., repr=False)`."""
    return isinstance(field.value, ast.Call) and any(
        one.arg == "repr" and isinstance(one.value, ast.Constant) and one.value.value is False
        for one in field.value.keywords
    )


def product():
    """Yield the files of the product that may have to do with secrets."""
    for name in PACKAGES:
        for file in (ROOT / name).rglob("*.py"):
            if not any(str(file.relative_to(ROOT)).startswith(one) for one in ELSEWHERE):
                yield file


def fields():
    """Yield each field of a class that is of attrs, with its place."""
    for file in product():
        for made in ast.walk(ast.parse(file.read_text())):
            if isinstance(made, ast.ClassDef) and any(
                ast.unparse(one).startswith("attrs.") for one in made.decorator_list
            ):
                for field in made.body:
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                        yield f"{file.relative_to(ROOT)}:{made.name}", field


def test_secrets_are_in_no_repr():
    """SEC-41."""
    shown, hidden = [], 0
    for where, field in fields():
        name, kind = field.target.id.strip("_"), ast.unparse(field.annotation)
        if name in SECRETS and kind in TEXTS:
            hidden += is_hidden(field)
            if not is_hidden(field):
                shown.append(f"{where}.{name}")
    assert shown == []
    assert hidden


class Reporter(actors.Hyperty):
    """Reports."""


async def test_handles_show_address_state_and_runtime(autojump_clock):
    """Never a value, which may be long and secret."""
    network = MemoryNetwork()
    made = Reporter()
    assert repr(made) == "<Reporter, not deployed>"
    where = "hyperty-runtime://a.example/ra"
    async with actors.open_node("a.example", network=network) as node:
        assert repr(node) == f"<Node a.example {node.url} open>"
        async with actors.open_runtime("a.example", "ra", node=node.url, network=network) as run:
            assert repr(run) == f"<Runtime {where} open>"
            one = await run.deploy(lambda: made, "sensor")
            assert repr(one) == f"<Deployed 'sensor' {one.url} running in {where}>"
            assert repr(made) == f"<Reporter {one.url} in {where}>"
            other = await run.deploy(Reporter)
            async with one.report("comm", {"secret": "s3cret"}, allow=(other.url,)) as reported:
                shown = f"<ReportedObject {reported.url} version 1 reported in {where}>"
                assert repr(reported) == shown
                async with other.observe(reported.url) as copy:
                    shown = f"<ObservedObject {reported.url} version 1 observed in {where}>"
                    assert repr(copy) == shown
                assert repr(copy) == shown.replace("observed", "gone")
            assert repr(reported) == f"<ReportedObject {reported.url} version 1 over in {where}>"
            await one.undeploy()
            assert "undeployed" in repr(one)
        assert repr(run) == f"<Runtime {where} closed>"
    assert repr(node).endswith("closed>")


def test_a_message_shows_no_values():
    body = {
        "value": {"token": "s3cret", "x": ["s3cret"] * 1000},
        "accessToken": "s3cret",
        "code": 403,
        "description": "n" * 1000,
        "k" * 1000: 1,
    }
    shown = repr(Message(7, MessageType.RESPONSE, "hyperty://a.ex/1", "hyperty://b.ex/2", body))
    assert "s3cret" not in shown
    assert "hyperty://a.ex/1" in shown
    assert "{'value': ..., 'accessToken': ..., 'code': 403, 'description': 'nnn" in shown
    assert len(shown) < 600
