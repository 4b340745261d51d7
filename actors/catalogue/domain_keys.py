"""The keys with which a domain signs, as the trust file says (T12)."""

from typing import Final, final

import attrs

from actors.catalogue.errors import NotServedError, SourceAwayError
from actors.catalogue.refusals import RefusalError, from_error
from actors.catalogue.source import DOMAIN_KEYS, Source
from actors.catalogue.trust_file import KeyTrust
from actors.keys.errors import BadKeysError
from actors.keys.key_set import Keys, read_keys
from fsm.catalogue.descriptor_io import Reason, Refused
from specs.limits.login import JWKS_BYTES

__all__ = ["DomainKeys", "keys_of"]

_UNPROVED: Final = Refused(
    Reason.WRONG_KEY,
    "its keys are published where nothing proves whose they are",
    "name its catalogue with https, or its keys in the trust file",
)


@final
@attrs.frozen
class DomainKeys:
    """The keys of a domain.

    Attributes:
        keys: The keys.
        published: The key set as it was published, to be remembered; None: it was not.
    """

    keys: Keys
    published: str | None = None


async def keys_of(said: Keys | KeyTrust, source: Source, known: str | None) -> DomainKeys:
    """Return the keys of a domain.

    Args:
        said: The keys, or where they come from.
        source: The catalogue of the domain.
        known: The key set that was published and trusted before; None: none was.

    If cancelled, nothing has changed.

    Raises:
        RefusalError: There are no keys that can be trusted.
    """
    if not isinstance(said, KeyTrust):
        return DomainKeys(said)
    if said is KeyTrust.FIRST_USE and known is not None:
        return DomainKeys(_read(known), known)
    if said is KeyTrust.PUBLISHED and not source.proves_domain:
        raise RefusalError(_UNPROVED)
    try:
        text = (await source.read(DOMAIN_KEYS, JWKS_BYTES)).decode(errors="replace")
    except (NotServedError, SourceAwayError) as exc:
        if known is None:
            raise RefusalError(from_error(exc)) from exc
        text = known
    return DomainKeys(_read(text), text)


def _read(text: str) -> Keys:
    try:
        return read_keys(text.encode())
    except BadKeysError as exc:
        why = f"its keys cannot be used: {exc.reason}"
        raise RefusalError(Refused(Reason.WRONG_KEY, why, "ask the domain to mend them")) from exc
