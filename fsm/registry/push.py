"""The devices of runtimes that sleep, and who may wake them how often (PFY-09).

A device is known by the runtime that registered it. It is woken by the address of that runtime, or
of its user. Times are seconds since the epoch, because devices outlive the process.
"""

from collections.abc import Iterable
from typing import Final, final

import attrs

from fsm.limits.token_bucket import Rate, TokenBuckets
from specs.limits.node import PUSH_DEVICES, PUSH_LIFE, PUSH_RUNTIMES

_SENDERS: Final = Rate(1 / 6, 10)
"""Calls of one sender: ten at once, then ten a minute (ours)."""

_CALLS: Final = Rate(1 / 60, 5)
"""Calls that one device gets of one sender: five at once, then one a minute (ours)."""

_ALL_CALLS: Final = Rate(1 / 6, 30)
"""Calls that one device gets of all: one sender alone cannot use them up (ours)."""


@final
@attrs.frozen(slots=True, kw_only=True)
class Device:
    """How a push service reaches the device of a runtime (RFC 8030, RFC 8291).

    Attributes:
        runtime: The runtime that registered it.
        user: The user who was logged in there; None: nobody.
        endpoint: URL that the push service gave to the device. Whoever has it may try to push.
        p256dh: Public key of the device, an uncompressed point in base64url.
        auth: Secret of the device, in base64url.
        until: When it is forgotten unless it is registered again.
    """

    runtime: str
    user: str | None
    endpoint: str = attrs.field(repr=False)
    p256dh: str = attrs.field(repr=False)
    auth: str = attrs.field(repr=False)
    until: float


@final
class DeviceTable:
    """The devices of one node; a runtime has one, a user at most `PUSH_DEVICES`."""

    def __init__(self, devices: Iterable[Device] = ()) -> None:
        self._devices: dict[str, Device] = {}
        self._of_user: dict[str, set[str]] = {}
        self._senders = TokenBuckets[str](_SENDERS)
        self._calls = TokenBuckets[tuple[str, str]](_CALLS)
        self._all_calls = TokenBuckets[str](_ALL_CALLS)
        for one in devices:
            self._note(one)

    def __len__(self) -> int:
        return len(self._devices)

    def keep(self, device: Device, now: float) -> tuple[str, ...] | None:
        """Register a device; return the runtimes whose devices had to give way.

        Those of the same user that are registered longest give way. None: the table is full.

        Args:
            device: The device; it replaces the former one of its runtime.
            now: Current time.
        """
        self.forget(device.runtime)
        gone: list[str] = []
        if device.user is not None:
            held = sorted(self.reached_by(device.user, 0.0), key=lambda one: one.until)
            gone += [one.runtime for one in held[: max(0, len(held) + 1 - PUSH_DEVICES)]]
        if len(self._devices) - len(gone) >= PUSH_RUNTIMES:
            gone += [one.runtime for one in self._devices.values() if one.until <= now]
        for runtime in gone:
            self.forget(runtime)
        if len(self._devices) >= PUSH_RUNTIMES:
            return None
        self._note(attrs.evolve(device, until=now + PUSH_LIFE))
        return tuple(gone)

    def _note(self, device: Device) -> None:
        self._devices[device.runtime] = device
        if device.user is not None:
            self._of_user.setdefault(device.user, set()).add(device.runtime)

    def forget(self, runtime: str) -> bool:
        """Forget the device of a runtime; return whether there was one."""
        device = self._devices.pop(runtime, None)
        if device is None:
            return False
        if device.user is not None:
            others = self._of_user[device.user]
            others.discard(runtime)
            if not others:
                del self._of_user[device.user]
        return True

    def device_of(self, runtime: str) -> Device | None:
        """Return the device of a runtime, if there is one."""
        return self._devices.get(runtime)

    def reached_by(self, address: str, now: float) -> tuple[Device, ...]:
        """Return the devices of a runtime, or of a user.

        Args:
            address: Address of the runtime or user.
            now: Current time.
        """
        runtimes = self._of_user.get(address, {address})
        found = (self._devices.get(runtime) for runtime in sorted(runtimes))
        return tuple(one for one in found if one is not None and one.until > now)

    def may_call(self, sender: str, now: float) -> bool:
        """Spend a call of a sender; return whether it had one.

        Args:
            sender: Runtime, or node of another domain.
            now: Current time.
        """
        return self._senders.try_spend(sender, now)

    def may_reach(self, device: Device, sender: str, now: float) -> bool:
        """Spend a call of a sender to a device; return whether there was one.

        Args:
            device: The device.
            sender: Runtime, or node of another domain.
            now: Current time.
        """
        may = self._calls.try_spend((sender, device.runtime), now)
        return may and self._all_calls.try_spend(device.runtime, now)
