"""The manifest of a run: its participants, named by the process that started it.

Participants that traces mention (`fsm.judge.missing`) do not include one that nobody else
recorded. A manifest is a JSON file that names all:

    {"schema": "protofly.manifest/1", "participants": [
      {"address": "domain://msg-node.a.ex", "node": "node.a.ex"},
      {"address": "hyperty-runtime://a.ex/alice", "node": "alice", "run": "20260801T..."},
      {"address": "hyperty-runtime://b.ex/old", "traced": false}]}

`node` is the name of the process, as in `node=<name>` of its folder; without it a participant is
known by what its trace says of its address. With `run` exactly this run of it has to be there.
A manifest names all participants: a trace of a process that it does not declare makes the verdict
incomplete, since then it does not name all participants.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs

from fsm.judge.missing import Missing, Took, absent
from specs.errors import BadMessageError, ProtoflyError
from specs.schema.field import Address, checked

SCHEMA: Final = "protofly.manifest/1"
"""Name of the form."""

_Trace: TypeAlias = tuple[str, str, frozenset[str]]
"""Run and node of a trace, and the addresses that its process says it has."""


@final
class ManifestError(ProtoflyError):
    """A file is no manifest: correct it."""

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(f"cannot use the manifest {place}: {reason}")


@final
@attrs.frozen(field_transformer=checked)
class Participant:
    """A process that took part.

    Attributes:
        address: Address of the runtime or the message node.
        node: Name of the process; None: any.
        run: Which run of it; None: any.
        traced: Whether it keeps a trace.
    """

    address: Address
    node: str | None = None
    run: str | None = None
    traced: bool = True

    def is_in(self, run: str, node: str, itself: frozenset[str]) -> bool:
        """Return whether a trace is one of this participant.

        Args:
            run: Run of the trace.
            node: Process of the trace.
            itself: The addresses that the process says it has.
        """
        if self.node is None:
            return self.address in itself
        return self.node == node and self.run in {None, run}


@final
@attrs.frozen
class Manifest:
    """The participants of a run."""

    participants: tuple[Participant, ...]

    def text(self) -> str:
        """Return the manifest as the text of a file."""
        rows = [
            attrs.asdict(one, filter=lambda _, value: value is not None)
            for one in self.participants
        ]
        return json.dumps({"schema": SCHEMA, "participants": rows}, indent=1) + "\n"

    def differences(self, traces: Iterable[_Trace]) -> Iterator[Missing]:
        """Yield in what the traces are not those that the manifest declares.

        Args:
            traces: Those that have a record.
        """
        processes = sorted(traces, key=lambda trace: trace[:2])
        for one in self.participants:
            if one.traced and not any(one.is_in(*trace) for trace in processes):
                reason = f"the manifest declares {one.address} traced, and it has no trace here"
                yield Missing(one.run or "", one.node or "", 0, reason)
        for run, node, itself in processes:
            flaw = self._flaw(run, node, itself)
            if flaw is not None:
                yield Missing(run, node, 1, flaw)

    def _flaw(self, run: str, node: str, itself: frozenset[str]) -> str | None:
        declared = [one for one in self.participants if one.is_in(run, node, itself)]
        if not declared:
            return "the manifest does not declare this process"
        if not any(one.traced for one in declared):
            return f"the manifest declares {declared[0].address} untraced, and here is its trace"
        if itself and not any(one.address in itself for one in declared):
            said = " and ".join(sorted(itself))
            return f"the manifest declares this process as {declared[0].address}, and it is {said}"
        return None


def not_there(
    processes: Sequence[tuple[str, str, Took]],
    untraced: Collection[str] = (),
    manifest: Manifest | None = None,
) -> Iterator[Missing]:
    """Yield participants without a trace, according to the manifest and the traces.

    Args:
        processes: Run, node and mentioned participants of each process, in their order.
        untraced: Addresses or domains of participants that are known to keep no trace.
        manifest: The participants; None: unknown.
    """
    declared = () if manifest is None else manifest.participants
    if manifest is not None:
        yield from manifest.differences((run, node, took.itself) for run, node, took in processes)
    known = {*untraced, *(one.address for one in declared)}
    yield from absent([took for _, _, took in processes], known)


def read_manifest(place: Path) -> Manifest:
    """Read a manifest.

    Raises:
        ManifestError: The file cannot be read, or is no manifest.
    """
    try:
        return _manifest(json.loads(place.read_bytes()))
    except OSError as exc:
        raise ManifestError(place, f"{exc.strerror}") from exc
    except (json.JSONDecodeError, UnicodeDecodeError) as exc:
        raise ManifestError(place, f"it is no JSON: {exc}") from exc
    except BadMessageError as exc:
        raise ManifestError(place, str(exc)) from exc


def _manifest(content: object) -> Manifest:
    """Read a manifest.

    Raises:
        BadMessageError: It is none; says why, as half a sentence.
    """
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise BadMessageError(f'it is no object with "schema": "{SCHEMA}"')
    _check_names(content, {"schema", "participants"}, "the manifest")
    rows = content.get("participants")
    if not isinstance(rows, list) or not rows:
        raise BadMessageError("participants is no list of objects, or empty")
    participants = tuple(_participant(row, f"participants[{at}]") for at, row in enumerate(rows))
    seen: set[tuple[str | None, ...]] = set()
    for at, one in enumerate(participants):
        identity = (one.address,) if one.node is None else (one.node, one.run)
        if identity in seen:
            raise BadMessageError(
                f"participants[{at}] is there twice; distinguish them by node and run"
            )
        seen.add(identity)
    return Manifest(participants)


_FIELDS: Final = frozenset(field.name for field in attrs.fields(Participant))


def _participant(row: object, where: str) -> Participant:
    if not isinstance(row, dict):
        raise BadMessageError(f"{where} is no object")
    _check_names(row, _FIELDS, where)
    if "address" not in row:
        raise BadMessageError(f"{where} has no address")
    if "run" in row and "node" not in row:
        raise BadMessageError(f"{where} has a run, and no node whose run that is")
    try:
        return Participant(**row)
    except BadMessageError as exc:
        raise BadMessageError(f"{where}.{exc}") from exc


def _check_names(content: Mapping[str, object], known: AbstractSet[str], where: str) -> None:
    for name in content:
        if name not in known:
            raise BadMessageError(
                f"{where} has a field {name!r}; known: {', '.join(sorted(known))}"
            )
