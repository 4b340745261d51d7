"""Decision whether a descriptor and its code package may be used (T12..T15, S16).

A descriptor is a signed document in a domain's catalogue that describes a stub or a hyperty.
"""

from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Final, TypeAlias, final

import attrs

from specs.addresses.address import Entry, host_in, is_public_host
from specs.capability import unmet
from specs.descriptor import (
    LANGUAGE,
    Described,
    HypertyDescriptor,
    Revocations,
    Revoked,
    SourcePackage,
    StubDescriptor,
)
from specs.jsonvalue import Json, JsonObject
from specs.limits.foreign_code import DESCRIPTOR_LIFE


class Reason(StrEnum):
    """Reason for the refusal of a descriptor or its package."""

    UNKNOWN_DOMAIN = "unknown-domain"
    AWAY = "away"
    NOT_THERE = "not-there"
    UNSIGNED = "unsigned"
    WRONG_KEY = "wrong-key"
    BAD_SIGNATURE = "bad-signature"
    MALFORMED = "malformed"
    MISPLACED = "misplaced"
    EXPIRED = "expired"
    LIVES_TOO_LONG = "lives-too-long"
    ROLLED_BACK = "rolled-back"
    REVOKED = "revoked"
    LIST_EXPIRED = "list-expired"
    LIST_ROLLED_BACK = "list-rolled-back"
    LANGUAGE = "language"
    NOTHING_TO_DEPLOY = "nothing-to-deploy"
    UNKNOWN_STUB = "unknown-stub"
    PRIVATE_PLACE = "private-place"
    WITHOUT_TLS = "without-tls"
    NO_SANDBOX = "no-sandbox"
    UNKNOWN_PUBLISHER = "unknown-publisher"
    PUBLISHER_SIGNATURE = "publisher-signature"
    UNKNOWN_MACHINE = "unknown-machine"
    NO_ENDPOINTS = "no-endpoints"
    CONSTRAINT = "constraint"
    LINK_CODE = "link-code"
    WRONG_KIND = "wrong-kind"
    TOO_LARGE = "too-large"
    WRONG_HASH = "wrong-hash"
    BAD_ARCHIVE = "bad-archive"


class Reach(Enum):
    """The network addresses that the descriptors of a domain may name as endpoints."""

    PUBLIC = "public"
    ANYWHERE = "anywhere"


class Level(Enum):
    """The kinds of stubs of a foreign domain that may run here (T13)."""

    PROFILE = 1
    """Stubs that are shipped with the runtime, with the domain's settings."""

    PACKAGE = 2
    """Code from the domain, in a sandbox."""


@attrs.frozen
class Terms:
    """The trust of a runtime's operator in one foreign domain.

    Attributes:
        publishers: Publishers whose packages are accepted; empty: no code at all.
        reach: The network addresses that the domain's descriptors may name.
    """

    publishers: frozenset[str] = frozenset()
    reach: Reach = Reach.PUBLIC


@attrs.frozen
class Seen:
    """Counter and hash of the newest known descriptor at a catalogue address, to detect old ones.

    Attributes:
        counter: The counter in the descriptor, which rises with each version.
        digest: Hash of the signed text.
    """

    counter: int
    digest: str


@attrs.frozen
class Here:
    """The abilities of this runtime, which decide whether a descriptor can be used here.

    Attributes:
        stubs: Names of the shipped stubs that connect to a domain.
        machines: Hashes of the known state machines for stubs.
        levels: The kinds of stubs that may run; without a sandbox, shipped stubs only.
        link_stubs: Names of the shipped stubs that make direct links.
        link_machines: Hashes of the state machines that only stubs of direct links have.
        hyperties: Capabilities for hyperties, as in `specs.capability`; None: only check that some
            runtime could have the capabilities that are needed.
        protocols: Capabilities for stubs, in the same form.
    """

    stubs: frozenset[str]
    machines: frozenset[str] = frozenset()
    levels: frozenset[Level] = frozenset({Level.PROFILE})
    link_stubs: frozenset[str] = frozenset()
    link_machines: frozenset[str] = frozenset()
    hyperties: JsonObject | None = None
    protocols: JsonObject | None = None


@final
@attrs.frozen
class Refused:
    """The result of a check: a descriptor or package is refused.

    Attributes:
        reason: The reason, for programs.
        why: The reason, as half a sentence.
        advice: The remedy, as half a sentence.
    """

    reason: Reason
    why: str
    advice: str


# Checks of a descriptor before it is used (T12..T15, S16, CAT-08, PFY-01).

_Check: TypeAlias = Callable[[], Refused | None]

_ASK_DOMAIN: Final = "ask the domain for one that is right"
_ASK_NEW: Final = "ask the domain for a newer one"
_NEEDS_SANDBOX: Final = "its code would need a sandbox, and this runtime has none"
_PRIVATE: Final = 'write reach = "anywhere" for the domain in the trust file if you mean it'


def judge_entry(
    entry: Entry,
    descriptor: Described,
    digest: str,
    now: float,
    seen: Seen | None = None,
    revocations: Revocations | None = None,
) -> Refused | None:
    """Check the address, age, version and revocation of any descriptor; return a refusal, or None.

    Args:
        entry: The catalogue address from which the descriptor was fetched.
        descriptor: The descriptor.
        digest: Hash of the signed text.
        now: Seconds since the epoch.
        seen: The newest known descriptor at that address.
        revocations: The newest revocation list of the domain.
    """
    checks: tuple[_Check, ...] = (
        lambda: _place(entry, descriptor),
        lambda: _time(descriptor, now),
        lambda: _progress(descriptor, seen, digest),
        lambda: _list_age(revocations, now),
        lambda: _find_revocation(entry, descriptor.counter, revocations),
    )
    return next((refusal for check in checks if (refusal := check()) is not None), None)


def judge_use(
    descriptor: Described, terms: Terms, here: Here, revocations: Revocations | None = None
) -> Refused | None:
    """Check whether this runtime can and may deploy a stub or hyperty; return a refusal, or None.

    Args:
        descriptor: The descriptor; descriptors of other kinds are always accepted.
        terms: The operator's trust in the domain.
        here: The abilities of this runtime.
        revocations: The newest revocation list of the domain.
    """
    if isinstance(descriptor, HypertyDescriptor):
        return _hyperty(descriptor, terms, here, revocations) or _constraints(
            descriptor.constraints, here.hyperties
        )
    if not isinstance(descriptor, StubDescriptor):
        return None
    if descriptor.source_package is None:
        refused = _profile(descriptor, terms, here)
    else:
        refused = _publisher(descriptor, terms, revocations) or _fitness(descriptor, terms, here)
    return refused or _constraints(descriptor.constraints, here.protocols)


def judge_offer(descriptor: Described, here: Here) -> Refused | None:
    """Check a descriptor that a domain wants to publish; return a refusal, or None.

    None: a runtime that trusts the domain could deploy the described stub or hyperty.

    Args:
        descriptor: The descriptor.
        here: The abilities of runtimes.
    """
    package = descriptor.source_package
    publishers = frozenset[str]() if package is None else frozenset({package.publisher})
    return judge_use(descriptor, Terms(publishers, Reach.ANYWHERE), here)


def judge_revocations(
    domain: str, found: Revocations, known: Revocations | None, now: float
) -> Refused | None:
    """Check a new revocation list whose signature is valid; return a refusal, or None.

    None: the new list replaces the known list.

    Args:
        domain: The domain whose list was requested.
        found: The list.
        known: The former list.
        now: Seconds since the epoch.
    """
    if found.domain != domain:
        why = f"its list of what is revoked is that of {found.domain}"
        return Refused(Reason.MISPLACED, why, _ASK_DOMAIN)
    if known is not None and found != known and found.counter <= known.counter:
        return _old_list(found, known)
    return _list_age(found, now)


def judge_package(
    promised: SourcePackage, size: int, digest: str, flaw: str | None
) -> Refused | None:
    """Check a downloaded package against its descriptor; return a refusal, or None.

    Args:
        promised: Size and hash of the package in the descriptor.
        size: Number of downloaded bytes.
        digest: SHA-256 of the bytes.
        flaw: A fault of the archive, as half a sentence; None: no fault.
    """
    if size != promised.size:
        why = f"its package has {size} bytes and not {promised.size}"
        return Refused(Reason.TOO_LARGE, why, _ASK_DOMAIN)
    if digest != promised.sha256:
        why = "its package is not the one whose hash was signed"
        return Refused(Reason.WRONG_HASH, why, _ASK_DOMAIN)
    return None if flaw is None else Refused(Reason.BAD_ARCHIVE, f"its package {flaw}", _ASK_DOMAIN)


# ---- checks of all descriptors


def _place(entry: Entry, descriptor: Described) -> Refused | None:
    identity = (descriptor.cguid, descriptor.type, descriptor.object_name)
    if identity == (entry.address, str(entry.type), entry.name):
        return None
    why = f"it was signed for another place, {descriptor.cguid}"
    return Refused(Reason.MISPLACED, why, _ASK_DOMAIN)


def _time(descriptor: Described, now: float) -> Refused | None:
    remaining = descriptor.expires - now
    if remaining <= 0:
        return Refused(Reason.EXPIRED, f"it expired {-remaining:.0f} s ago", _ASK_NEW)
    if remaining > DESCRIPTOR_LIFE:
        why = f"it would be good for more than {DESCRIPTOR_LIFE // 86_400} days"
        return Refused(Reason.LIVES_TOO_LONG, why, "ask the domain for one that expires sooner")
    return None


def _progress(descriptor: Described, seen: Seen | None, digest: str) -> Refused | None:
    if seen is None or descriptor.counter > seen.counter:
        return None
    if descriptor.counter == seen.counter and digest == seen.digest:
        return None
    if descriptor.counter == seen.counter:
        why = f"another one with the same counter {seen.counter} was seen before"
    else:
        why = f"its counter {descriptor.counter} is less than {seen.counter}, which was seen before"
    return Refused(Reason.ROLLED_BACK, why, "ask the domain why it serves an old one")


def _list_age(known: Revocations | None, now: float) -> Refused | None:
    if known is None or known.expires > now:
        return None
    why = f"its list of what is revoked expired {now - known.expires:.0f} s ago"
    return Refused(Reason.LIST_EXPIRED, why, _ASK_NEW)


def _old_list(found: Revocations, known: Revocations) -> Refused:
    why = (
        f"its list of what is revoked has the counter {found.counter}, "
        f"and another with {known.counter} was seen before"
    )
    return Refused(Reason.LIST_ROLLED_BACK, why, "ask the domain why it serves an old one")


def _find_revocation(entry: Entry, counter: int, known: Revocations | None) -> Refused | None:
    for each in _entries(known):
        if each.cguid == entry.address and counter <= each.counter:
            return _is_revoked("it is", each.why)
    return None


def _is_revoked(subject: str, why: str) -> Refused:
    sentence = f"{subject} revoked by its domain{f': {why[:200]}' if why else ''}"
    return Refused(Reason.REVOKED, sentence, _ASK_NEW)


def _constraints(constraints: Json, capabilities: JsonObject | None) -> Refused | None:
    """Return the refusal of constraints that this runtime cannot meet, or None (STB-12, CAT-04)."""
    why = unmet(constraints, capabilities)
    advice = "ask the domain for one without it, or use another runtime"
    return None if why is None else Refused(Reason.CONSTRAINT, why, advice)


def _hyperty(
    descriptor: HypertyDescriptor, terms: Terms, here: Here, revocations: Revocations | None
) -> Refused | None:
    if descriptor.source_package is None:
        why = "it has no package with hash and publisher"
        return Refused(Reason.NOTHING_TO_DEPLOY, why, _ASK_DOMAIN)
    refused = _publisher(descriptor, terms, revocations)
    if refused is None and Level.PACKAGE not in here.levels:
        return Refused(Reason.NO_SANDBOX, _NEEDS_SANDBOX, "use another runtime")
    return refused


# ---- level 1: a stub that is shipped with the runtime


def _profile(descriptor: StubDescriptor, terms: Terms, here: Here) -> Refused | None:
    profile = descriptor.profile
    if profile is None:
        why = "it has neither a profile nor a package with hash and publisher"
        return Refused(Reason.NOTHING_TO_DEPLOY, why, _ASK_DOMAIN)
    if profile.stub in here.link_stubs:
        return None
    if profile.stub not in here.stubs:
        known = ", ".join(sorted(here.stubs | here.link_stubs))
        why = f"no stub {profile.stub[:40]!r} ships with this runtime, only {known}"
        return Refused(Reason.UNKNOWN_STUB, why, "ask the domain for one of them")
    if profile.endpoint is None:
        why = "its profile does not say where the stub dials"
        return Refused(Reason.NO_ENDPOINTS, why, _ASK_DOMAIN)
    return _places((profile.endpoint,), terms)


def _places(endpoints: tuple[str, ...], terms: Terms) -> Refused | None:
    for endpoint in endpoints:
        host = host_in(endpoint)
        if host is None:
            why = f"its endpoint {endpoint[:80]!r} names no host"
            return Refused(Reason.PRIVATE_PLACE, why, _ASK_DOMAIN)
        if terms.reach is Reach.PUBLIC and not is_public_host(host):
            why = f"its endpoint {endpoint[:80]!r} is in a private network"
            return Refused(Reason.PRIVATE_PLACE, why, _PRIVATE)
    return None


# ---- level 2: code of the domain


def _publisher(
    descriptor: Described, terms: Terms, revocations: Revocations | None
) -> Refused | None:
    """Return the refusal of code by its language, publisher or revocation, or None."""
    package = descriptor.source_package
    if package is None or descriptor.language.lower() != LANGUAGE:
        why = f"its code is written in {descriptor.language[:40]!r}"
        return Refused(Reason.LANGUAGE, why, f"ask the domain for one in {LANGUAGE}")
    if package.publisher not in terms.publishers:
        why = f"the publisher of its code, {package.publisher[:80]!r}, is not allowed"
        return Refused(
            Reason.UNKNOWN_PUBLISHER, why, "name it in the trust file if you trust its code"
        )
    if any(entry.sha256 == package.sha256 for entry in _entries(revocations)):
        return _is_revoked("its package is", "")
    return None


def _fitness(descriptor: StubDescriptor, terms: Terms, here: Here) -> Refused | None:
    """Return the refusal of a stub's code that cannot be monitored, confined or used, or None."""
    if descriptor.machine is None or descriptor.machine not in here.machines:
        why = "it follows an unknown machine"
        return Refused(
            Reason.UNKNOWN_MACHINE, why, "ask the domain for one that follows a known one"
        )
    if descriptor.machine in here.link_machines:
        why = "its code would make direct links, and no code from elsewhere holds the runtime's key"
        return Refused(Reason.LINK_CODE, why, "ask the domain for a profile of a shipped stub")
    if not descriptor.endpoints:
        why = "it does not say where its code dials"
        return Refused(Reason.NO_ENDPOINTS, why, _ASK_DOMAIN)
    if Level.PACKAGE not in here.levels:
        return Refused(
            Reason.NO_SANDBOX, _NEEDS_SANDBOX, "ask the domain for a profile of a shipped stub"
        )
    return _places(descriptor.endpoints, terms)


def _entries(known: Revocations | None) -> tuple[Revoked, ...]:
    return () if known is None else known.revoked
