"""Inputs and results of the judgement on a descriptor (T12..T15, S16)."""

from collections.abc import Mapping
from enum import Enum, StrEnum, unique
from typing import TypeAlias, final

import attrs

from specs.addresses.descriptor import Entry
from specs.descriptor import HypertyDescriptor, Revocations, StubDescriptor
from specs.jsonvalue import JsonObject


@final
@unique
class Reason(StrEnum):
    """Reasons to refuse a descriptor or its package; one each."""

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


@final
@unique
class Reach(Enum):
    """The places that the descriptors of a domain may name."""

    PUBLIC = "public"
    ANYWHERE = "anywhere"


@final
@unique
class Level(Enum):
    """The code of a foreign domain that runs here (T13)."""

    PROFILE = 1
    PACKAGE = 2


@final
@attrs.frozen
class Terms:
    """The configuration of one domain by the operator of a runtime.

    Attributes:
        publishers: Whose packages may come from it; none: no code at all.
        reach: Which places it may name.
    """

    publishers: frozenset[str] = frozenset()
    reach: Reach = Reach.PUBLIC


@final
@attrs.frozen
class Seen:
    """The newest descriptor that stood at a place.

    Attributes:
        counter: Its counter.
        digest: Hash of what was signed.
    """

    counter: int
    digest: str


@final
@attrs.frozen
class Memory:
    """The memory of a runtime about a domain.

    Attributes:
        seen: The newest descriptor by place.
        revocations: The newest list of what is revoked.
    """

    seen: Mapping[Entry, Seen] = attrs.field(factory=dict)
    revocations: Revocations | None = None


@final
@attrs.frozen
class Here:
    """The abilities of this runtime.

    Attributes:
        stubs: Names of the stubs that ship and lead to a domain.
        machines: Hashes of the machines it knows.
        levels: How foreign domains may be reached; without a sandbox by profiles only.
        link_stubs: Names of the stubs that ship and make direct links.
        link_machines: Hashes of the machines that only stubs of direct links follow.
        hyperties: Capabilities for hyperties, by `specs.capability`; None: it is only judged
            whether a runtime could have those that are needed.
        protocols: Capabilities for stubs, likewise.
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
class Facts:
    """The facts about a signed descriptor; the signature fits.

    Attributes:
        wanted: Where it was fetched from.
        descriptor: What it says.
        digest: Hash of what was signed.
    """

    wanted: Entry
    descriptor: StubDescriptor
    digest: str


@final
@attrs.frozen
class HypertyFacts:
    """The facts about a signed descriptor of a hyperty; the signature fits.

    Attributes:
        wanted: Where it was fetched from.
        descriptor: What it says.
        digest: Hash of what was signed.
    """

    wanted: Entry
    descriptor: HypertyDescriptor
    digest: str


@final
@attrs.frozen
class Package:
    """The facts about the bytes of a package.

    Attributes:
        size: How many there are.
        sha256: Their hash.
        flaw: What is wrong with them as an archive, as half a sentence; None: nothing.
    """

    size: int
    sha256: str
    flaw: str | None = None


@final
@attrs.frozen
class Trusted:
    """The descriptor may be acted upon.

    Attributes:
        level: How.
        seen: What must be remembered before that.
    """

    level: Level
    seen: Seen


@final
@attrs.frozen
class Refused:
    """It must not be.

    Attributes:
        reason: Why, for programs.
        why: Why, as half a sentence.
        advice: What to do, as half a sentence.
    """

    reason: Reason
    why: str
    advice: str


Verdict: TypeAlias = Trusted | Refused
