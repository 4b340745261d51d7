"""The policies in force: one immutable snapshot, replaced as a whole (POL-03, S9).

Policies are read from files of TOML or JSON, one policy set each, and again while the process runs.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final, final

import attrs
import orjson
import trio

from actors.kit.arguments import as_paths, type_checked
from actors.kit.files import read_toml
from actors.kit.log import get_logger
from fsm.policy.model import Book, PolicySet
from fsm.policy.page import BadPolicyError
from fsm.policy.pdp import Pdp
from fsm.policy.reading import read_set
from fsm.policy.terms import Algorithm, Result
from specs.errors import PlaceError
from specs.limits.node import MAX_POLICY_BYTES, MAX_POLICY_SETS

# The configured policies of a node or a runtime, and the error of an unusable file.


@final
class PolicyFileError(PlaceError, public=True):
    """A policy file cannot be used, so that no file takes effect; the reason has advice."""

    summary = "cannot use the policy file {}"


@final
@attrs.frozen(kw_only=True, field_transformer=type_checked)
class PolicyConfig:
    """Configuration of the policies by which a node or a runtime judges messages.

    Attributes:
        files: Policy files, one set of policies each; a folder stands for the `*.toml` and
            `*.json` in it.
        sets: Sets of the program itself; they come before those of the files.
        combining: Algorithm that combines the results of several sets.
        default: Result for a message to which no policy applies (POL-15).
        zone: Time zone of conditions on the time of day.

    Raises:
        TypeError: A value is of a wrong kind.
    """

    files: tuple[Path, ...] = attrs.field(default=(), converter=as_paths)
    sets: tuple[PolicySet, ...] = ()
    combining: Algorithm = Algorithm.DENY_OVERRIDES
    default: Result = Result.PERMIT
    zone: tzinfo = UTC


_log = get_logger("actors.policy")

_JSON: Final = ".json"


def read_policies(files: Iterable[Path], given: Iterable[PolicySet] = ()) -> tuple[PolicySet, ...]:
    """Read policy files, all or none; a folder stands for the `*.toml` and `*.json` in it, by name.

    Args:
        files: The files and folders.
        given: Sets that were read before; they come first.

    Raises:
        PolicyFileError: A file cannot be used, or two sets have the same id.
    """
    sets = {each.id: each for each in given}
    for path in _list_files(files):
        policy_set = read_policy(path)
        first = sets.setdefault(policy_set.id, policy_set)
        if first is not policy_set:
            what = f"its id {policy_set.id!r} is that of {first.source} too; give it another"
            raise PolicyFileError(path, what)
        if len(sets) > MAX_POLICY_SETS:
            raise PolicyFileError(path, f"more than {MAX_POLICY_SETS} sets are too many")
    return tuple(sets.values())


def read_policy(path: Path) -> PolicySet:
    """Read one policy file.

    Raises:
        PolicyFileError: The file cannot be used.
    """
    try:
        return read_set(_document(path), str(path))
    except BadPolicyError as exc:
        what = f"{exc.path}: {exc.reason}" if exc.path else exc.reason
        raise PolicyFileError(path, what) from exc


def _list_files(files: Iterable[Path]) -> Sequence[Path]:
    listed: list[Path] = []
    for path in files:
        inside = [path]
        try:
            if path.is_dir():
                inside = sorted([*path.glob("*.toml"), *path.glob(f"*{_JSON}")])
        except OSError as exc:
            raise PolicyFileError(path, f"{exc.strerror}; name another") from exc
        if not inside:
            what = f"no *.toml and no *{_JSON} is in that folder; put one there"
            raise PolicyFileError(path, what)
        listed += inside
    return listed


def _document(path: Path) -> object:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_POLICY_BYTES + 1)
    except OSError as exc:
        raise PolicyFileError(path, f"{exc.strerror}; name another") from exc
    if len(content) > MAX_POLICY_BYTES:
        what = f"it has more than {MAX_POLICY_BYTES} bytes; make it several files"
        raise PolicyFileError(path, what)
    is_json = path.suffix == _JSON
    try:
        return orjson.loads(content) if is_json else read_toml(content.decode())
    except RecursionError as exc:
        raise PolicyFileError(path, "its tables or lists are nested too deep") from exc
    except ValueError as exc:
        # The content is no UTF-8, no TOML, or has a number of thousands of digits.
        form = "JSON" if is_json else "TOML"
        raise PolicyFileError(path, f"it is no {form}: {exc}; correct it") from exc


class PolicyStore:
    """Holder of the current policies of a node or a runtime; outlives a bus that crashes.

    A judging task reads `pdp` once per message. A change assigns the next, complete `pdp`, so that
    no judgement uses half of a change.

    Raises:
        PolicyFileError: A file cannot be used; nothing must start without it.
    """

    def __init__(self, config: PolicyConfig) -> None:
        self.config = config
        sets = read_policies(config.files, config.sets)
        self.pdp = Pdp(Book(sets=sets, combining=config.combining, default=config.default))

    @property
    def book(self) -> Book:
        """The current policies."""
        return self.pdp.book

    def adopt(self, book: Book) -> None:
        """Replace the current policies; the next message is judged by the new ones."""
        self.pdp = Pdp(book)

    def with_sets(self, sets: Iterable[PolicySet]) -> Book:
        """Return a copy of the current policies with other policy sets."""
        return attrs.evolve(self.book, sets=tuple(sets), version=self.book.version + 1)

    def of_files(self, sets: Iterable[PolicySet]) -> Book:
        """Return a copy of the current policies with new sets and the configured settings."""
        config = self.config
        book = self.with_sets(sets)
        return attrs.evolve(book, combining=config.combining, default=config.default)


async def reread(store: PolicyStore) -> Book | PolicyFileError:
    """Read the policy files again, in a thread; return the new policies, or the error.

    An error is logged.

    Args:
        store: The store, which is not changed.

    If cancelled, the files may be read all the same.
    """
    config = store.config
    try:
        sets = await trio.to_thread.run_sync(
            read_policies, config.files, config.sets, abandon_on_cancel=True
        )
    except PolicyFileError as error:
        _log.error("policies kept", why=str(error), version=store.book.version)
        return error
    return store.of_files(sets)


async def reload(store: PolicyStore) -> Book | PolicyFileError:
    """Read the policy files again, in a thread, and adopt them; on an error, change nothing.

    The outcome is logged.

    Args:
        store: The store.

    If cancelled, the policies stay as they are.
    """
    book = await reread(store)
    if isinstance(book, Book):
        store.adopt(book)
        say_reread(book)
    return book


def say_reread(book: Book) -> None:
    """Log that the policies of the files are in effect."""
    _log.warning("policies read again", version=book.version, sets=len(book.sets))
