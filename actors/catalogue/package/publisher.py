"""Whether the publisher of a package signed it: the domain that offers it may be another (T13)."""

from typing import Final

from actors.catalogue.errors import BadSealError
from actors.catalogue.package.seal import SealType, read_seal, verified
from actors.catalogue.refusals import RefusalError
from actors.keys.key_set import Keys
from fsm.catalogue.descriptor_io import Reason, Refused
from specs.descriptor import SourcePackage
from specs.jsonvalue import JsonObject

__all__ = ["check_publisher", "published"]

_ADVICE: Final = "ask the domain for one that its publisher signed"


def published(sha256: str, size: int, entry_point: str) -> JsonObject:
    """Return what a publisher signs of a package.

    Args:
        sha256: Its SHA-256, in hexadecimal digits.
        size: Its size in bytes.
        entry_point: Its entry point, `module:function`.
    """
    return {"sha256": sha256, "size": size, "sourceCodeClassname": entry_point}


def check_publisher(package: SourcePackage, keys: Keys) -> None:
    """Refuse a package whose hash, size and entry point were not signed by these keys.

    Args:
        package: What the descriptor says of the package.
        keys: Keys of its publisher.

    Raises:
        RefusalError: They have not signed it.
    """
    try:
        said = verified(read_seal(package.signature.encode(), SealType.PACKAGE), keys)
    except BadSealError as exc:
        why = f"its publisher {package.publisher!r} did not sign its package: {exc.why}"
        raise RefusalError(Refused(Reason.PUBLISHER_SIGNATURE, why, _ADVICE)) from exc
    if said != published(package.sha256, package.size, package.entry_point):
        why = f"its publisher {package.publisher!r} signed another package"
        raise RefusalError(Refused(Reason.PUBLISHER_SIGNATURE, why, _ADVICE))
