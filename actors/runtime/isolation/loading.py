"""Hyperties from signed descriptors: how they are found, and the step of a failure (HYP-01).

The steps are: descriptor, trust, constraints, address, sandbox, registration. A step that fails
undoes those before it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, final

from actors.catalogue.errors import CatalogueFileError, RefusedDescriptorError
from actors.pipe.plan import HypertyPackageContents, SandboxEndedError, SandboxError
from actors.runtime.hyperty.hyperty import Profile
from actors.runtime.isolation.hyperty import HypertyPackage
from actors.runtime.registry.allocation import AllocationError, NotKeptError
from actors.runtime.registry.registrations import RegistrationError
from actors.runtime.stubs.catalogue import Catalogue, HypertyFound
from fsm.catalogue.descriptor import Reason
from specs.errors import BadMessageError, BadUrlError, ProtoflyError


@final
class LoadStep(StrEnum):
    """The steps of loading a hyperty."""

    DESCRIPTOR = "descriptor"
    """Its descriptor is fetched and read."""

    TRUST = "trust"
    """Its signature, its publisher and its package are verified."""

    CONSTRAINTS = "constraints"
    """What it needs is there."""

    ADDRESS = "address"
    """It gets an address."""

    SANDBOX = "sandbox"
    """It starts in a sandbox process."""

    REGISTRATION = "registration"
    """The domain registry takes its record."""


@final
class HypertyLoadError(ProtoflyError, public=True):
    """A hyperty of a catalogue was not deployed; all completed steps were undone.

    Attributes:
        address: Catalogue address of its descriptor.
        step: The step that failed.
        reason: Why.
    """

    def __init__(self, address: str, step: LoadStep, reason: str) -> None:
        super().__init__(f"{address} is not loaded: {step}: {reason}")
        self.address = address
        self.step = step
        self.reason = reason


_NO_CATALOGUE: Final = (
    "no catalogues are configured; name them with --catalogue and --trust, or "
    "RuntimeConfig.catalogues"
)

_STEPS: Final = {
    **dict.fromkeys(
        (
            Reason.NOT_THERE,
            Reason.AWAY,
            Reason.MALFORMED,
            Reason.MISPLACED,
            Reason.LANGUAGE,
            Reason.NOTHING_TO_DEPLOY,
        ),
        LoadStep.DESCRIPTOR,
    ),
    Reason.CONSTRAINT: LoadStep.CONSTRAINTS,
    Reason.NO_SANDBOX: LoadStep.SANDBOX,
}
"""Steps that a refused descriptor fails at; any other reason is one not to trust it."""


@contextmanager
def load_errors(address: str) -> Iterator[None]:
    """Convert errors of a step into a `HypertyLoadError` with the step.

    Args:
        address: Catalogue address of the hyperty.

    Raises:
        HypertyLoadError: A step failed.
    """
    try:
        yield
    except RefusedDescriptorError as exc:
        step = _STEPS.get(exc.refused.reason, LoadStep.TRUST)
        raise HypertyLoadError(address, step, str(exc)) from exc
    except BadUrlError as exc:
        raise HypertyLoadError(address, LoadStep.DESCRIPTOR, str(exc)) from exc
    except CatalogueFileError as exc:
        raise HypertyLoadError(address, LoadStep.TRUST, str(exc)) from exc
    except (AllocationError, NotKeptError, BadMessageError) as exc:
        raise HypertyLoadError(address, LoadStep.ADDRESS, str(exc)) from exc
    except (SandboxError, SandboxEndedError) as exc:
        raise HypertyLoadError(address, LoadStep.SANDBOX, str(exc)) from exc
    except RegistrationError as exc:
        raise HypertyLoadError(address, LoadStep.REGISTRATION, str(exc)) from exc


async def find_hyperty(
    catalogue: Catalogue, address: str, name: str | None
) -> tuple[Profile, HypertyPackage]:
    """Return the description of a hyperty of a catalogue, and its verified code (CAT-02).

    If cancelled, what was fetched and accepted so far may be kept.

    Args:
        catalogue: Catalogue of the runtime.
        address: Catalogue address of the hyperty.
        name: Its name in the domain registry; None: that of its descriptor.

    Raises:
        HypertyLoadError: No catalogue is configured.
        RefusedDescriptorError: The hyperty must not run.
        BadUrlError: The address is none of a catalogue.
        CatalogueFileError: What was seen cannot be remembered.
    """
    found = await catalogue.hyperty(address)
    if found is None:
        raise HypertyLoadError(address, LoadStep.DESCRIPTOR, _NO_CATALOGUE)
    return _profile(found, name), _package(found)


def _profile(found: HypertyFound, name: str | None) -> Profile:
    descriptor, schema = found.descriptor, found.descriptor.message_schema
    return Profile(
        name or descriptor.object_name,
        descriptor.cguid,
        resources=descriptor.hyperty_type,
        data_schemes=found.schemes,
        message_schema=schema if isinstance(schema, dict) else None,
    )


def _package(found: HypertyFound) -> HypertyPackage:
    package, configuration = found.descriptor.source_package, found.descriptor.configuration
    entry_point = "" if package is None else package.entry_point
    return HypertyPackage(found.package, HypertyPackageContents(entry_point, configuration or {}))
