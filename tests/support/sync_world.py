"""A reporter's cores and an observer's, with lists of messages between them."""

from collections.abc import Callable, Iterable

import attrs

from fsm.compositions import sync_terms as terms
from fsm.engine import Step
from fsm.product.bounds import Bounds
from fsm.sync import copy as object_copy_terms
from fsm.sync import invitations
from fsm.sync import reporter_io as reporter
from fsm.sync.copy import ObserverCore
from fsm.sync.invitations import InvitationsCore
from fsm.sync.repeats import RepeatsCore
from fsm.sync.reporter import ReporterCore
from specs.bodies.sync import Change, ChangeObject, DataObject
from specs.limits.protocol import LEASE

URL, ALICE, BOB, MANAGER = "comm://a.ex/o", "hyperty://a.ex/ha", "hyperty://b.ex/hb", "rb/sm"
RUNTIME = "hyperty-runtime://a.ex/ra"
CREATED = DataObject(ALICE, RUNTIME, {}, URL)
CODES = {"trying": 100, "accepted": 200, "declined": 403}


class SyncWorld:
    """The real cores, and what the composition `sync` knows of them."""

    def __init__(self, bounds: Bounds) -> None:
        self.now = 0.0
        self.channels: dict[str, list[str]] = {
            name: [] for name in (terms.ASKS, terms.INVITES, terms.TOLD, terms.CHANGES)
        }
        self._reporter = ReporterCore(CREATED)
        self._invitations = InvitationsCore()
        self._copy = ObserverCore(URL, BOB)
        self._repeats = RepeatsCore()
        self._states = {"invitation": "[*]", "subscription": "[*]", "copy": "[*]"}
        self._is_telling = False
        self._question = reporter.Question(0, 0)
        self._budgets = {wish.name: wish.budget for wish in terms.wishes(bounds)}
        self._budgets["losses left"] = bounds.losses

    # --- what is asked of it: each returns whether it could be done

    def wish(self, name: str) -> bool:
        is_there = not self._reporter.is_deleted
        has_copy = self._states["copy"] not in {"[*]", "deleted"}
        has_versions = self._reporter.snapshot.version < len(terms.VERSIONS)
        acts: dict[str, tuple[bool, Callable[[], None]]] = {
            terms.INVITE: (is_there, self._invite),
            terms.OBSERVE: (True, self._observe),
            terms.LEAVE: (has_copy, self._leave),
            terms.DELETE: (is_there, self._delete),
            terms.CHANGE: (is_there and has_versions, lambda: self._change("once")),
            terms.LOST: (is_there and has_versions, lambda: self._change("lost")),
            terms.DOUBLED: (is_there and has_versions, lambda: self._change("twice")),
        }
        can, do = acts[name]
        if not can or not self._budgets[name]:
            return False
        self._budgets[name] -= 1
        do()
        return True

    def delete_unheard(self) -> bool:
        """The object is deleted, and the farewell is lost."""
        if self._reporter.is_deleted or not self._budgets[terms.LOST]:
            return False
        self._budgets[terms.LOST] -= 1
        self._delete()
        if self.channels[terms.CHANGES][-1:] == ["deleted"]:
            self.channels[terms.CHANGES].pop()
        return True

    def decide(self, *, yes: bool) -> bool:
        if self._states["subscription"] != "requested" or not self._budgets[terms.DECIDE]:
            return False
        self._budgets[terms.DECIDE] -= 1
        if yes:
            self._report(reporter.ReporterAccepted(BOB, self._question))
        else:
            self._report(reporter.ReporterRefused(BOB, "no", self._question))
        return True

    def say_nothing(self) -> bool:
        if self._states["subscription"] != "requested":
            return False
        self._report(reporter.ReporterRefused(BOB, "nobody answered", self._question))
        return True

    def told_all(self) -> bool:
        if not self._reporter.is_deleted or self._states["subscription"] != "active":
            return False
        self._report(reporter.ObserversTold())
        return True

    def silence(self) -> bool:
        if self._states["invitation"] != "sent":
            return False
        self.now = max(self.now, self._invitations.deadline())
        self._do(self._invitations.feed(invitations.SilenceEnded(), self.now))
        return True

    def say_again(self) -> bool:
        """The last change is due again, and the copy does not have it."""
        has_it = self._copy.version == self._reporter.snapshot.version
        if not self._is_silent or has_it or self._states["subscription"] != "active":
            return False
        self.now = max(self.now, self._repeats.deadline())
        repeated = self._repeats.due(self.now, lambda _: not self._reporter.is_deleted)
        if repeated is None:
            return False
        self._say(f"changed {repeated.change.version}", terms.CHANGES)
        return True

    @property
    def _is_silent(self) -> bool:
        return self._states["copy"] == "live" and not self.channels[terms.CHANGES]

    def copy_time(self) -> bool:
        until = self._copy.deadline()
        if self._states["copy"] == "live" and not (
            self._is_silent and self._reporter.is_deleted and not self.channels[terms.ASKS]
        ):
            return False
        if until == float("inf") or (self._states["copy"] == "stale" and self.channels[terms.ASKS]):
            return False
        self.now = max(self.now, until)
        was = self._states["copy"]
        self._observed(object_copy_terms.CopyTimeOver())
        if was == "syncing":
            self._say("unsubscribe")
        return True

    def lose(self, channel: str) -> bool:
        waiting = self.channels[channel]
        if not waiting or not self._budgets["losses left"] or channel == terms.CHANGES:
            return False
        self._budgets["losses left"] -= 1
        waiting.pop(0)
        return True

    def deliver(self, channel: str) -> bool:
        waiting = self.channels[channel]
        if not waiting:
            return False
        word, _, version = waiting.pop(0).partition(" ")
        (self._at_reporter if channel == terms.ASKS else self._at_observer)(word, version)
        return True

    def lease_over(self) -> bool:
        """Nobody renews what the observer was granted."""
        is_gone = self._states["copy"] in {"[*]", "deleted"}
        if not is_gone or self._states["subscription"] != "active":
            return False
        self._report(reporter.LeaseOver(BOB))
        return True

    # --- the shadow

    def told(self) -> dict[str, str]:
        kept = "".join(str(one) for one in sorted(self._copy._early))
        return {
            **self._states,
            "object": "deleted" if self._reporter.is_deleted else "there",
            "version": str(self._reporter.snapshot.version),
            "authorised": "yes" if BOB in self._reporter.guests.allowed else "no",
            "have": str(self._copy.version),
            "kept": kept or "nothing",
            **{name: str(count) for name, count in self._budgets.items()},
        }

    def _say(self, message: str, channel: str = terms.ASKS) -> None:
        self.channels[channel].append(message)

    # --- the reporter's end

    def _report(self, happened: reporter.ReporterInput) -> None:
        effects = self._reporter.feed(happened)
        for effect in effects:
            if isinstance(effect, reporter.ReporterAsked):
                self._question = effect.question
        self._do(effects)

    def _do(self, effects: Iterable[object]) -> None:
        for effect in effects:
            match effect:
                case Step():
                    part = effect.machine.removeprefix("object_").removeprefix("observer_")
                    self._states[part] = effect.new
                case reporter.Granted(_, _, snapshot):
                    self._say(f"granted {snapshot.version}", terms.TOLD)
                case reporter.Denied():
                    self._say("denied", terms.TOLD)
                case reporter.Deleted(managers) if managers:
                    self._say("deleted", terms.CHANGES)
                case invitations.SendInvitation():
                    self._say("invite", terms.INVITES)
                case object_copy_terms.ReadNeeded():
                    self._say("read")
                case _:
                    pass

    def _invite(self) -> None:
        self._do(self._invitations.feed(invitations.InviteAsked(URL, BOB), self.now))
        self._report(reporter.Authorised(BOB))

    def _change(self, *how: str) -> None:
        for each in how:
            self._report(reporter.ChangeAsked(ALICE, ChangeObject(URL, "n", 1)))
            last = Change(self._reporter.snapshot.version, "n", 1)
            self._repeats.published(self._reporter.snapshot, last, self.now)
            if self._states["copy"] not in {"[*]", "deleted"}:
                times = {"lost": 0, "once": 1, "twice": 2}[each]
                message = f"changed {self._reporter.snapshot.version}"
                self.channels[terms.CHANGES] += [message] * times

    def _delete(self) -> None:
        self._do(self._invitations.feed(invitations.ObjectGone(URL), self.now))
        self._report(reporter.DeleteAsked(ALICE))

    def _at_reporter(self, word: str, version: str) -> None:
        match word:
            case "subscribe":
                self._report(reporter.SubscribeAsked(BOB, MANAGER, LEASE))
            case "unsubscribe":
                self._report(reporter.UnsubscribeAsked(BOB, MANAGER))
            case "read" if self._reporter.may_read(BOB) and not self._reporter.is_deleted:
                self._say(f"value {self._reporter.snapshot.version}", terms.TOLD)
            case "read":
                self._say("unreadable", terms.TOLD)
            case _:
                answer = invitations.InviteeAnswered(URL, BOB, CODES[word])
                self._do(self._invitations.feed(answer, self.now))

    # --- the observer's end

    def _observed(self, happened: object_copy_terms.ObserverInput) -> None:
        self._do(self._copy.feed(happened, self.now))

    def _observe(self) -> None:
        self._observed(object_copy_terms.ObserveBegun())
        self._say("subscribe")

    def _leave(self) -> None:
        self._observed(object_copy_terms.GivenUp("leaves"))
        self._say("unsubscribe")

    def _at_observer(self, word: str, version: str) -> None:
        match word:
            case "invite":
                self._say("accepted")
            case _ if self._states["copy"] == "[*]":
                pass
            case "granted" | "value":
                snapshot = attrs.evolve(CREATED, version=int(version))
                self._observed(object_copy_terms.SnapshotRead(snapshot))
            case "changed":
                change = Change(int(version), "n", 1)
                self._observed(object_copy_terms.Changed(change))
            case "deleted":
                self._observed(object_copy_terms.WithdrawnByReporter())
            case "denied" if self._states["copy"] == "syncing":
                self._observed(object_copy_terms.GivenUp(word))
            case "unreadable" if self._states["copy"] in {"live", "stale"}:
                self._observed(object_copy_terms.GivenUp(word))
            case _:
                pass
