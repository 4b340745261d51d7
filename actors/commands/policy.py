"""`python -m actors policy`: checks policy files, and explains their decisions, without a node."""

import time
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import BinaryIO, Final

import attrs
import click
import orjson
from typing_extensions import override

from actors.cli import failure, group, options
from actors.cli.options import DEFAULTS, DOMAIN, define_command, reader_of
from actors.node.policy_hook import Asker
from actors.policy.store import read_policies
from fsm.commands import parameters
from fsm.commands.parameters import HELP_OPTIONS, argument, option
from fsm.policy import attributes, model, schema, terms
from fsm.policy.explain import Explanation, Finding, Seen, explain, review
from specs import errors, identity, jsonvalue
from specs.addresses.address import canonical, domain_of
from specs.dialects.normalise import normalise
from specs.message import Message

_HOLDS: Final = {True: "true", False: "false", None: "cannot be known"}


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield lines that tell which rule decided, and why."""
    verdict = explanation.verdict
    if verdict.result is terms.Result.NOT_APPLICABLE:
        yield f"{explanation.effective}: nothing applies, so the default holds"
    else:
        why = f": {verdict.why}" if verdict.why else ""
        yield f"{explanation.effective}, because {verdict.path} says {verdict.result}{why}"
    for name, why in explanation.missing.items():
        yield f"{name} cannot be had: {why}"
    for task in verdict.tasks:
        kind = "advice" if task.is_advice else "obligation"
        what = " ".join(part for part in (task.do, task.name, task.text) if part)
        yield f"{kind} {task.when}: {what}"
    for finding in explanation.findings:
        yield from _finding_lines(finding)


def _finding_lines(finding: Finding) -> Iterator[str]:
    indent = "  " * finding.path.count("/")
    suffix = "" if finding.is_addressed else " (for the other direction)"
    yield f"{indent}{finding.path}: {finding.result}{suffix}"
    for part, seen in (("target", finding.target), ("condition", finding.condition)):
        if seen is not None:
            yield from _seen_lines(seen, indent + "  ", part)


def _seen_lines(seen: Seen, indent: str, part: str = "") -> Iterator[str]:
    name = f"{part}: " if part else ""
    is_leaf = not seen.parts and seen.value is not None
    value = f" ({_plain(seen.value)!r})" if is_leaf and seen.value is not None else ""
    yield f"{indent}{name}{seen.text}: {_HOLDS[seen.outcome]}{value}"
    for inner in seen.parts:
        yield from _seen_lines(inner, indent + "  ")


def explanation_json(explanation: Explanation) -> jsonvalue.JsonObject:
    """Return an explanation as an object; lists of roles are sorted."""
    verdict = explanation.verdict
    return {
        "decision": str(explanation.effective),
        "result": str(verdict.result),
        "policy": verdict.path or "default",
        "why": verdict.why,
        "missing": dict(explanation.missing),
        "tasks": [{**attrs.asdict(task), "when": str(task.when)} for task in verdict.tasks],
        "findings": [_finding_json(each) for each in explanation.findings],
    }


def _finding_json(finding: Finding) -> jsonvalue.JsonObject:
    fields: jsonvalue.JsonObject = attrs.asdict(
        finding,
        value_serializer=lambda _, __, each: sorted(each) if isinstance(each, frozenset) else each,
    )
    return {"addressed": fields.pop("is_addressed"), **fields}


def _plain(value: attributes.Value) -> jsonvalue.Json:
    if not isinstance(value, frozenset):
        return value
    listed: list[jsonvalue.Json] = [*sorted(value)]
    return listed


_FOR_EVER: Final = float("inf")


@click.group("policy", context_settings=HELP_OPTIONS)
def command() -> None:
    """Check policy files, and explain their decisions."""


@define_command("schema", command)
def show_schema() -> int:
    """Print the JSON Schema of policy files."""
    group.echo(*schema.SCHEMA_FILE.read_text().splitlines())
    return group.ExitCode.OK


# ---- check


_FILES: Final = argument("FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))


@define_command("check", command, short_help="Read policy files and report what is odd.")
def check(*, files: tuple[Path, ...] = _FILES, as_json: bool = option(flag="--json")) -> int:
    """Read policy files as a node does, and report what is odd in them.

    Exits with 3 if a node would refuse them, with 1 if something is odd, such as a
    rule that never decides, else with 0.

    Args:
        as_json: Print one JSON object per file and line.
    """
    is_odd = False
    for policies in read_policies(files):
        remarks = review(policies)
        is_odd = is_odd or bool(remarks)
        if as_json:
            explanation = [attrs.asdict(remark) for remark in remarks]
            failure.say(
                "policy-check",
                file=policies.source,
                id=policies.id,
                rules=policies.rules,
                remarks=explanation,
            )
            continue
        group.echo(
            f"{policies.source}: set {policies.id}, rules: {policies.rules}, odd: {len(remarks)}"
        )
        for remark in remarks:
            group.echo(f"  {remark.path} {remark.what}")
    return group.ExitCode.FAILED if is_odd else group.ExitCode.OK


def _sender(
    *,
    user: str | None = option("URL", read=canonical),
    idp: str | None = option("NAME"),
    role: tuple[str, ...] = option("ROLE"),
) -> identity.Identity | None:
    """Return the identity of the sender; None: no login.

    Args:
        user: User of the sender.
        idp: Identity provider of the user [default: its domain].
        role: Role of the user; repeatable.
    """
    if user is None:
        if idp is not None or role:
            raise click.UsageError("--idp and --role say more of a user; add --user")
        return None
    issuer = domain_of(user) if idp is None else idp
    return identity.Identity(user=user, issuer=issuer, until=_FOR_EVER, roles=frozenset(role))


_TIME: Final = reader_of("{!r} is no time such as 2026-11-21T08:30:00", datetime.fromisoformat)


@define_command("explain", command, short_help="Say what is decided about a message, and why.")
def explain_message(  # noqa: PLR0913 - one for each option
    *,
    files: tuple[Path, ...] = _FILES,
    message: BinaryIO = argument("MESSAGE.json", type=click.File("rb")),
    sender: identity.Identity | None = parameters.group(_sender),
    runtime: str | None = option("URL", read=canonical),
    domain: str | None = option(read=DOMAIN),
    direction: terms.Direction | None = option(members=(terms.Direction.IN, terms.Direction.OUT)),
    own_user: str | None = option("URL", read=canonical),
    hyperty: tuple[str, ...] = option("NAME"),
    own: bool | None = option(flag="--own/--foreign", default=None),
    at: datetime | None = option("TIME", read=_TIME),
    zone: tzinfo = option("ZONE", default="UTC", read=options.ZONE),
    default: terms.Result = option(members=DEFAULTS, default=terms.Result.PERMIT),
    combining: terms.Algorithm = option(default=terms.Algorithm.DENY_OVERRIDES),
    as_json: bool = option(flag="--json"),
) -> int:
    """Say what policy files decide of a message, by which rule, and why.

    The message is one JSON object, as on the wire; - reads it from standard input.

    Args:
        runtime: Runtime of the session.
        domain: Domain of the node or runtime [default: that of the receiver].
        direction: Judge as a runtime does, a message that comes in or goes out.
        own_user: User of the judging runtime; needs --direction.
        hyperty: Name of its hyperty at its end of the message; repeatable.
        own: Owner of the resource [default: unknown].
        at: Time of the message [default: now].
        zone: Time zone of the node.
        default: Decision if no policy applies.
        combining: How the results of several files combine.
        as_json: Print one JSON object.
    """
    parsed = _message(message)
    if own is not None and runtime is None:
        raise click.UsageError(
            "--own and --foreign say whose a session's resource is; add --runtime"
        )
    owns = None if own is None else lambda _address, _runtime: own
    user = None if sender is None else sender.user
    place = attributes.Place(domain or domain_of(parsed.to), zone, owns)
    book = model.Book(sets=read_policies(files), combining=combining, default=default)
    asker = Asker(runtime, sender).sender
    passing = _passing(parsed, direction, own_user, hyperty)
    if passing is not None:
        # A runtime has no sessions: it sees the sender as the receiver of the message does.
        asker, sender = _assumed_sender(parsed, runtime, user), None
    request = attributes.Request(
        parsed, runtime, sender, _seconds(at, zone), place, sender=asker, passing=passing
    )
    explanation = explain(book, request)
    if as_json:
        failure.say("policy-explain", **explanation_json(explanation))
    else:
        group.echo(*explanation_lines(explanation))
    return group.ExitCode.OK


@attrs.frozen
class _Here(attributes.Locals):
    """A runtime with one address, which belongs to its hyperties."""

    address: str
    names: frozenset[str]

    @override
    def is_local(self, address: str) -> bool:
        return address == self.address

    @override
    def hyperties(self, address: str) -> frozenset[str]:
        return self.names if address == self.address else frozenset()


def _passing(
    message: Message, direction: terms.Direction | None, user: str | None, names: tuple[str, ...]
) -> attributes.Passing | None:
    if direction is None:
        if user is not None or names:
            raise click.UsageError("--own-user and --hyperty are about a runtime; add --direction")
        return None
    is_outgoing = direction == terms.Direction.OUT
    address = message.from_ if is_outgoing else message.to
    return attributes.Passing(is_outgoing, user, _Here(address, frozenset(names)))


def _assumed_sender(
    message: Message, runtime: str | None, user: str | None
) -> identity.SenderIdentity | None:
    if user is None:
        return None if runtime is None else identity.SenderIdentity(runtime)
    return identity.SenderIdentity(runtime or message.from_, user, identity.VouchedBy.DOMAIN)


def _seconds(at: datetime | None, zone: tzinfo) -> float:
    if at is None:
        return time.time_ns() / 1e9
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).timestamp()


def _message(file: BinaryIO) -> Message:
    what = f"{file.name} holds no message"
    kinds = (orjson.JSONDecodeError, errors.BadMessageError)
    with group.advise_on(*kinds, what=what, advice="correct it"):
        raw: object = orjson.loads(file.read())
        if not isinstance(raw, dict):
            raise errors.BadMessageError("it is no JSON object")
        return normalise(raw)
