"""`python -m actors stub`: descriptors by which other domains reach this one."""

import ast
import io
import re
import symtable
import time
import warnings
import zipfile
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

import click
import orjson
import trio

from actors.catalogue import archive, errors, inspection, publishing, seal, source
from actors.catalogue.trust_file import Trust, read_trust
from actors.cli import options
from actors.cli.failure import Meanings, Table, say
from actors.cli.group import CommandError, ExitCode, OrderedGroup, advise_on, echo
from actors.cli.options import define_command
from actors.commands.config import read_signer
from actors.keys.key_set import BadKeysError, Keys, read_keys
from actors.kit.files import write_whole
from actors.runtime.catalogue import deployable_here
from fsm.catalogue import descriptor as offers
from fsm.commands import parameters
from fsm.commands.parameters import HELP_OPTIONS, argument, option
from fsm.machine_list import MACHINES, fingerprint
from specs.addresses.address import DOMAIN_KEYS, REVOKED, WELL_KNOWN, CatalogueType, Entry, entry_at
from specs.descriptor import LANGUAGE, Described, Revocations, Revoked, StubDescriptor
from specs.jsonvalue import Json, JsonObject
from specs.limits import foreign_code
from specs.limits.group import GROUP_FILE_BYTES
from specs.limits.node import JWKS_BYTES
from specs.limits.protocol import MAX_ID
from transports.bodies import write_body


@click.group("stub", context_settings=HELP_OPTIONS, cls=OrderedGroup)
def command() -> None:
    """Publish how other domains reach this one, and look at what others publish.

    Keys are made with `token keys`.
    """


_MEANING: Final[Meanings] = (
    (errors.RefusedDescriptorError, ExitCode.REFUSED, ""),
    (errors.SourceAwayError, ExitCode.CANNOT_CONNECT, "name another catalogue, or try again later"),
    (errors.NotServedError, ExitCode.FAILED, "name something that is published there"),
    (source.BadPlaceError, ExitCode.CONFIGURATION, "name a directory or an http URL"),
    (errors.CatalogueFileError, ExitCode.CONFIGURATION, "mend it, or name another with --into"),
    (errors.BadArchiveError, ExitCode.CONFIGURATION, "correct the package"),
    (errors.BadDescriptorError, ExitCode.CONFIGURATION, "correct it"),
    (BadKeysError, ExitCode.CONFIGURATION, "make keys with `token keys`"),
    (publishing.WrongKeyError, ExitCode.CONFIGURATION, "make one with `token keys`"),
)
"""Exit status and advice for errors of catalogues."""

_DAY: Final = 86_400

_INTO: Final = option(
    text="Directory of the catalogue; made if it does not exist.", type=parameters.FOLDER
)


_define = partial(define_command, of=command, meanings=_MEANING)


def read_bytes(path: Path, limit: int, option: str) -> bytes:
    """Read a file that an option names.

    Raises:
        CommandError: The file cannot be read, or is larger than any runtime accepts.
    """
    what, advice = f"cannot read {path}", f"name another file with {option}"
    with advise_on(OSError, what=what, advice=advice), path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise CommandError(f"{path} is larger than {limit} bytes; no runtime accepts it")
    return content


def read_json(path: Path, limit: int, option: str) -> JsonObject:
    """Read a file with a JSON object.

    Raises:
        CommandError: The file cannot be read, or has no JSON object.
    """
    with advise_on(orjson.JSONDecodeError, what=f"{path} is no JSON", advice="correct it"):
        content: Json = orjson.loads(read_bytes(path, limit, option))
    if not isinstance(content, dict):
        raise CommandError(f"{path} holds no JSON object; correct it")
    return content


def read_place(text: str) -> tuple[CatalogueType, str]:
    """Return type and name of an entry; refuse texts that are not `TYPE/NAME`."""
    kind, _slash, name = text.partition("/")
    entry: Entry | None = entry_at("a.example", kind, name)
    if entry is None:
        known = ", ".join(CatalogueType)
        raise click.BadParameter(
            f"{text!r} is no TYPE/NAME such as protocolstub/default; types are {known}"
        )
    return entry.type, entry.name


def seconds(days: float) -> int:
    """Return days in seconds, at least one."""
    return max(1, int(days * _DAY))


# Whether a package defines its entry point, by its sources; no code of it is run.

_UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)


def check_entry_point(package: bytes, entry_point: str, *, is_class: bool) -> None:
    """Refuse a package whose module does not define the name of the entry point.

    A name that the module assigns or imports may be of any kind, and `import *` or `global` may
    define names: only the sandbox shows whether such a name can be used.

    Args:
        package: Bytes of the package, which has the module.
        entry_point: `module:name`.
        is_class: Whether the name must be that of a class.

    Raises:
        BadArchiveError: The module cannot be compiled, or it does not define the name, or
            defines a function where a class is needed.
    """
    module, _, name = entry_point.partition(":")
    path, code = _source(package, module.replace(".", "/"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code, path)
            table = symtable.symtable(code.decode("utf-8-sig"), path, "exec")
    except _UNREADABLE as exc:
        raise errors.BadArchiveError(
            f"has a file {path!r} that Python cannot compile: {exc}"
        ) from exc
    symbol = table.lookup(name) if name in table.get_identifiers() else None
    nodes = [*ast.walk(tree)]
    if symbol is None or not (symbol.is_assigned() or symbol.is_imported()):
        # The name may still be defined when the module runs: by `import *`, or by a function.
        imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
        is_late = any(each.name == "*" for node in imports for each in node.names) or any(
            isinstance(node, ast.Global) and name in node.names for node in nodes
        )
        if not is_late:
            raise errors.BadArchiveError(
                f"has no {name!r} in its module {module!r} for its entry point"
            )
    elif is_class and not symbol.is_imported() and _is_function(name, nodes):
        raise errors.BadArchiveError(
            f"has a function as its entry point {entry_point!r}, and no class"
        )


def _source(package: bytes, base: str) -> tuple[str, bytes]:
    """Return the file of a module and its code; a folder hides a file, as in a sandbox."""
    with zipfile.ZipFile(io.BytesIO(package)) as file:
        names = file.namelist()
        path = next(name for name in (f"{base}/__init__.py", f"{base}.py") if name in names)
        return path, file.read(path)


def _is_function(name: str, nodes: Sequence[ast.AST]) -> bool:
    """Return whether a name is defined as a function only, without decorators."""
    others = [
        node
        for node in nodes
        if (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.ClassDef) and node.name == name)
    ]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in nodes if isinstance(node, kinds) and node.name == name]
    return bool(functions) and not others and not any(each.decorator_list for each in functions)


_DAYS: Final = 30.0
"""Default validity of a descriptor, in days."""


_Code: TypeAlias = tuple[Path, str, str, Path]
"""Folder, entry point, publisher and the publisher's key of a package."""


def _code(
    *,
    package: Path | None = option(
        "DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
    ),
    entry_point: str | None = option("module:NAME"),
    publisher: str | None = option("NAME"),
    publisher_key: Path | None = option(),
) -> _Code | None:
    """Return all options about a package; None: there is no package.

    Args:
        package: Directory of the code; it is packed beside the descriptor.
        entry_point: Function that makes the stub, or class of the hyperty.
        publisher: Publisher of the code.
        publisher_key: Private key of the publisher.
    """
    if package is None:
        if (entry_point, publisher, publisher_key) == (None, None, None):
            return None
        raise click.UsageError("--entry-point, --publisher and --publisher-key need --package")
    if entry_point is None or publisher is None or publisher_key is None:
        raise click.UsageError("--package needs --entry-point, --publisher, --publisher-key")
    return package, entry_point, publisher, publisher_key


@_define("sign", short_help="Sign a descriptor, with a package of code or without.")
def sign(  # noqa: PLR0913 - one for each option
    *,
    draft: Path = argument(),
    domain: str = option(required=True, read=options.DOMAIN),
    key: Path = option(),
    out: Path = option(),
    entry: tuple[CatalogueType, str] = option(
        "TYPE/NAME", multiple=False, default="protocolstub/default", read=read_place
    ),
    counter: int | None = option("N", type=options.Count(1, MAX_ID)),
    days: float | None = option(
        "N",
        text=f"How long it is good [default: {_DAYS:.0f}].",
        type=options.Quantity(min=0, max=foreign_code.DESCRIPTOR_LIFE / _DAY, min_open=True),
    ),
    machine: str | None = option("NAME", type=click.Choice(sorted(MACHINES))),
    domain_keys: Path | None = option(),
    code: _Code | None = parameters.group(_code),
) -> None:
    """Sign the descriptor in the JSON file DRAFT.

    Counter, expiry, and type and name (--entry) are added if DRAFT lacks them. An option
    overrides DRAFT. A file of upstream's catalogue can be a draft, too, if it describes a data
    schema, or a stub or hyperty without its code. A package is written beside the descriptor,
    with .zip as its ending.

    Args:
        domain: Domain of the descriptor.
        key: Private key of the domain.
        out: File for the signed descriptor.
        entry: Place in the catalogue; other domains fetch protocolstub/default.
        counter: Counter, greater than the last one [default: seconds since 1970].
        machine: State machine that the stub follows; required for the code of stubs.
        domain_keys: Public keys of `node --domain-key`, as a JSON Web Key Set; by them other
            domains verify what the domain states of its runtimes.
    """
    place, content = Entry(domain, *entry), read_json(draft, foreign_code.DESCRIPTOR_BYTES, "DRAFT")
    content = publishing.adopt_draft(place, content)
    fields = _add_dates(content, counter, days, machine)
    promise, package = ({}, b"") if code is None else _pack(place, code)
    key_fields = {} if domain_keys is None else {"domainKeys": _key_set(domain_keys)}
    content = {"version": str(fields["counter"]), **content, **fields, **key_fields, **promise}
    text = publishing.signed_draft(place, content, read_signer(key))
    _check_use(text, draft)
    files = {out: text.encode() + b"\n"}
    if package:
        files[out.with_suffix(".zip")] = package
    for path, written in files.items():
        advice = "name another file with --out"
        with advise_on(OSError, what=f"cannot write {path}", advice=advice):
            write_whole(path, written)
    say("stub-signed", address=place.address, **fields, files=[str(path) for path in files])


def _key_set(path: Path) -> JsonObject:
    """Read a set of public keys.

    Raises:
        CommandError: The file cannot be read.
        BadKeysError: The content is no set of keys.
    """
    keys = read_json(path, JWKS_BYTES, "--domain-keys")
    read_keys(orjson.dumps(keys))
    return keys


def _add_dates(
    draft: JsonObject, counter: int | None, days: float | None, machine: str | None
) -> JsonObject:
    """Return counter and expiry from the options, else from the draft, else defaults."""
    now = int(time.time_ns() // 1_000_000_000)
    fields: JsonObject = {
        "counter": counter or draft.get("counter", now),
        "expires": draft.get("expires", now + seconds(_DAYS)),
    }
    if days is not None:
        fields["expires"] = now + seconds(days)
    return fields if machine is None else {**fields, "machine": fingerprint(MACHINES[machine])}


def _check_use(text: str, draft: Path) -> None:
    """Refuse a stub or hyperty that no runtime could deploy, with any trust."""
    sealed = seal.read_seal(text.encode(), seal.SealType.DESCRIPTOR)
    descriptor, here = seal.read_descriptor(sealed.content), deployable_here()
    refused = offers.judge_offer(descriptor, here)
    if refused is not None:
        raise CommandError(
            f"no runtime could use this: {refused.why}; correct {draft} or the options"
        )


def _pack(place: Entry, code: _Code) -> tuple[JsonObject, bytes]:
    """Pack code; return the description of the package, and the package."""
    folder, entry_point, name, key = code
    advice = "name another directory with --package"
    with advise_on(OSError, what=f"cannot pack {folder}", advice=advice):
        package = archive.pack(folder)
    promise = publishing.describe_package(place, package, entry_point, name, read_signer(key))
    check_entry_point(package, entry_point, is_class=place.type is CatalogueType.HYPERTY)
    return {"language": LANGUAGE, **promise}, package


@_define("publish", short_help="Put a signed descriptor into the directory of a catalogue.")
def publish(
    *,
    file: Path = argument(),
    into: Path = _INTO,
    keys: Path | None = option(),
    package: Path | None = option(),
) -> None:
    """Copy the signed descriptor FILE and its package into a catalogue directory.

    Refused (exit status 4) if runtimes would refuse it: not signed by the published
    keys, an older counter than what is published, expired, or with a package that is not
    the one it promises.

    Args:
        keys: Public keys of the domain, published as well; required the first time.
        package: Package [default: the file with the same name and .zip, if it exists].
    """
    text = read_bytes(file, foreign_code.DESCRIPTOR_BYTES, "FILE")
    path = package or file.with_suffix(".zip")
    has_code = package is not None or (path != file and path.exists())
    content = read_bytes(path, foreign_code.PACKAGE_BYTES, "--package") if has_code else None
    public = None if keys is None else read_bytes(keys, JWKS_BYTES, "--keys")
    folder, now = publishing.CatalogueFolder(into), time.time_ns() / 1e9
    entry, descriptor = folder.publish(text, now, content, public)
    promised = descriptor.source_package
    if promised is not None and promised.size + len(text) > GROUP_FILE_BYTES:
        why = f"with its package it has more than {GROUP_FILE_BYTES} bytes"
        echo(f"protofly: nodes that share an engine do not serve it: {why}", err=True)
    say(
        "stub-published",
        address=entry.address,
        counter=descriptor.counter,
        expires=descriptor.expires,
        file=str(into / entry.path),
    )


_HEADS: Final = ("entry", "version", "counter", "expires", "how", "state")


_LATEST: Final = 253_402_300_799
"""The last second that a date can be written for."""


@_define("list", short_help="Show what a catalogue offers.")
def list_entries(*, where: str = argument(), as_json: bool = options.JSON_LINES) -> int:
    """List the entries of the catalogue at WHERE, a directory or http URL.

    `signed` means: by a key that the catalogue itself publishes, and neither expired nor
    revoked. Whether that is the domain's is for `stub verify --trust` to say.
    """
    lines = trio.run(_list, source.source_at(where))
    if as_json:
        for line in lines:
            say("stub", **line)
    else:
        rows = [tuple(str(line.get(head, "")) for head in _HEADS) for line in lines]
        Table(*_HEADS).print(rows)
        if not rows:
            echo("  ".join(_HEADS))
    return ExitCode.OK


async def _list(catalogue: source.Source) -> list[dict[str, object]]:
    async with aclosing(catalogue):
        listing = seal.read_listing(
            await catalogue.read(source.LISTING, foreign_code.LISTING_BYTES)
        )
        keys = await _keys(catalogue)
        known = await _revocations(catalogue, keys)
        places = [f"{each.type}/{each.name}" for each in listing.entries]
        return [await _line(catalogue, place, keys, known) for place in places]


async def _keys(catalogue: source.Source) -> Keys:
    try:
        return read_keys(await catalogue.read(DOMAIN_KEYS, JWKS_BYTES))
    except (errors.NotServedError, BadKeysError):
        return {}


async def _revocations(catalogue: source.Source, keys: Keys) -> Revocations | None:
    """Return the list of revocations, if there is a valid one."""
    try:
        text = await catalogue.read(REVOKED, foreign_code.REVOCATIONS_BYTES)
        return seal.signed_revocations(text, keys)
    except (errors.NotServedError, errors.BadSealError, errors.BadDescriptorError):
        return None


async def _line(
    catalogue: source.Source, entry: str, keys: Keys, revoked: Revocations | None
) -> dict[str, object]:
    """Return the fields of an entry, in the order of the table.

    The state is `signed`, or why the entry is invalid by the keys that the catalogue itself
    publishes.
    """
    line: dict[str, object] = {"entry": entry}
    try:
        sealed = seal.read_seal(
            await catalogue.read(f"{WELL_KNOWN}/{entry}", foreign_code.DESCRIPTOR_BYTES),
            seal.SealType.DESCRIPTOR,
        )
        descriptor = seal.read_descriptor(sealed.content)
        line |= {
            "version": descriptor.version,
            "counter": descriptor.counter,
            "expires": datetime.fromtimestamp(min(descriptor.expires, _LATEST), UTC).isoformat(),
            "how": _how(descriptor),
        }
        seal.read_verified(sealed, keys)
        place, now = seal.entry_of(descriptor), time.time_ns() / 1e9
        refused = offers.judge_entry(place, descriptor, sealed.digest, now, None, revoked)
    except errors.BadSealError as exc:
        return {**line, "state": exc.refused.why}
    except (errors.BadDescriptorError, errors.NotServedError, errors.SourceAwayError) as exc:
        return {**line, "state": str(exc)}
    return {**line, "state": "signed" if refused is None else str(refused.reason)}


def _how(descriptor: Described) -> str:
    if descriptor.source_package is not None:
        return f"code of {descriptor.source_package.publisher}"
    if isinstance(descriptor, StubDescriptor) and descriptor.profile is not None:
        return " ".join(filter(None, (descriptor.profile.stub, descriptor.profile.endpoint)))
    return ""


_MARK: Final = f"/{WELL_KNOWN}/"
_WORDS: Final = {True: "ok", False: "refused", None: "unknown"}


@_define("verify", short_help="Show a descriptor, and why a runtime would refuse it.")
def verify(
    *,
    where: str = argument(),
    trust: Path | None = option(),
    keys: Path | None = option(),
    as_json: bool = options.JSON_LINES,
) -> int:
    """Show the descriptor at WHERE, and each check that a runtime makes.

    WHERE is a file, whose package is the file with the same name and .zip, or a place in a
    catalogue such as https://catalogue.b.example/.well-known/protocolstub/default or the
    same in a directory. Exit status 4: it would be refused. Without --trust or --keys no
    signature is verified.

    Args:
        trust: Trust file, as for runtimes.
        keys: Public keys of the domain.
    """
    trusted = None if trust is None else read_trust(trust)
    known = None if keys is None else read_keys(read_bytes(keys, JWKS_BYTES, "--keys"))
    catalogue, path = _find_source(where)
    checks, descriptor, refused = trio.run(_inspect, catalogue, path, trusted, known)
    for check in checks:
        if as_json:
            say("stub-check", check=check.name, passed=check.passed, text=check.text)
        else:
            echo(f"{_WORDS[check.passed]:<9}{check.name:<20}{check.text}")
    if as_json and descriptor is not None:
        say("stub-descriptor", descriptor=write_body(descriptor))
    if refused is not None:
        why = f"{refused.why}; {refused.advice}"
        raise CommandError(f"a runtime would refuse it: {why}", ExitCode.REFUSED)
    return ExitCode.OK


def _find_source(where: str) -> tuple[source.Source, str]:
    """Return the catalogue of WHERE, and the path in the catalogue."""
    base, mark, path = where.rpartition(_MARK)
    if mark:
        return source.source_at(base), f"{WELL_KNOWN}/{path}"
    file = Path(where)
    files = {file.name: read_bytes(file, foreign_code.DESCRIPTOR_BYTES, "WHERE")}
    package = file.with_suffix(".zip")
    if package != file and package.exists():
        content = read_bytes(package, foreign_code.PACKAGE_BYTES, "WHERE")
        files[source.package_path(sha256(content).hexdigest())] = content
    return source.MemorySource(where, files), file.name


async def _inspect(
    catalogue: source.Source, path: str, trust: Trust | None, keys: Keys | None
) -> inspection.Inspection:
    async with aclosing(catalogue):
        here, now = deployable_here(), time.time_ns() / 1e9
        return await inspection.inspect(catalogue, path, trust, keys, here, now)


_LIST_DAYS: Final = 7.0
"""Default validity of a list, in days."""

_HASH: Final = re.compile(r"[0-9a-f]{64}")


def _read_hash(text: str) -> str:
    if not _HASH.fullmatch(text):
        raise click.BadParameter(f"{text!r} is no SHA-256 of 64 hexadecimal digits")
    return text


@_define("revoke", short_help="Revoke descriptors or packages, or renew the list of those.")
def revoke(
    *,
    into: Path = _INTO,
    domain: str = option(required=True, read=options.DOMAIN),
    key: Path = option(),
    entry: tuple[CatalogueType, str] | None = option("TYPE/NAME", multiple=False, read=read_place),
    up_to: int | None = option("N", type=options.Count(1, MAX_ID)),
    package: str | None = option("SHA256", read=_read_hash),
    why: str = option(default="", show_default=False),
    days: float = option(
        "N", type=options.Quantity(min=0, max=365, min_open=True), default=_LIST_DAYS
    ),
) -> None:
    """Add an entry to the domain's signed revocation list; without one, renew the list.

    Once there is a list, renew it before it expires.

    Args:
        domain: Domain of the list.
        key: Private key of the domain.
        entry: Place whose descriptors are revoked.
        up_to: Last counter that is revoked [default: all, also later ones].
        package: Hash of a revoked package.
        why: Reason, for runtimes.
        days: Validity of the list; later nothing of the domain is accepted until it is renewed.
    """
    if up_to is not None and entry is None:
        raise click.UsageError("--up-to counts descriptors of a place; name it with --entry")
    now = int(time.time_ns() // 1_000_000_000)
    added: list[Revoked] = []
    if entry is not None:
        address = Entry(domain, *entry).address
        added.append(Revoked(cguid=address, counter=up_to or MAX_ID, why=why))
    if package is not None:
        added.append(Revoked(sha256=package, why=why))
    times = now, now + seconds(days)
    revocations = publishing.CatalogueFolder(into).revoke(
        domain, tuple(added), read_signer(key), times
    )
    say(
        "stub-revocations",
        domain=revocations.domain,
        counter=revocations.counter,
        expires=revocations.expires,
        entries=len(revocations.revoked),
    )
