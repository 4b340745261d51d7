"""What real actors trace, run anew in each session of tests.

The stories are tests that exist for reasons of their own, chosen so that together they
take the rows of every machine; a story that is gone or renamed is missed at once.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from inspect import iscoroutinefunction

import attrs
import trio
import trio.testing

from fsm.judge.trace_line import TraceLine, Verdict, read_record
from fsm.judge.verdict import judge
from fsm.static_check import TakenStep
from specs.trace import Kind
from tests.support.trace.awaitable_tracer import AwaitableTracer
from tests.support.trace.census import counted
from tests.support.trace.memory import MemoryTracer
from tests.support.trace.trace_files import records, whole

Trace = Sequence[TraceLine]

HISTORIES = {
    "tests.actors.runtime.p2p.set_up.test_p2p_golden": (
        "test_the_handler_side_goes_as_the_golden_scenario",
    ),
    "tests.actors.runtime.p2p.test_p2p_whole": (
        "test_both_asking_at_once_get_one_link_the_smaller_runtime_asked_for",
        "test_one_handler_serves_two_requesters_and_one_cut_is_no_matter_of_the_other",
    ),
    "tests.actors.runtime.p2p.set_up.test_p2p_weather": (
        "test_when_nothing_can_be_dialled_both_ends_fail_and_the_node_carries_on",
        "test_a_link_that_does_not_come_back_is_given_up_and_a_new_one_made",
    ),
    "tests.actors.runtime.p2p.test_p2p_stub": (
        "test_a_handler_reports_its_registry_before_it_asks_it",
        "test_a_snapshot_that_is_none_ends_the_set_up",
    ),
    "tests.actors.runtime.p2p.set_up.test_p2p_objects": (
        "test_a_gap_that_the_read_does_not_close_is_read_again",
        "test_a_component_that_is_not_the_reporter_changes_and_deletes_nothing",
        "test_a_peer_that_deletes_its_object_ends_the_copy",
        "test_a_change_that_comes_before_the_snapshot_is_applied_after_it",
    ),
    "tests.actors.runtime.registry.test_registry": (
        "test_a_registry_that_is_stopped_ends_what_it_looks_for",
    ),
    "tests.actors.runtime.stubs.test_node_restart": (
        "test_a_link_made_before_the_restart_still_finds_help_after_a_cut",
    ),
    "tests.actors.runtime.stubs.test_final_ends": ("test_two_logins_of_one_name_do_not_fight",),
    "tests.actors.runtime.stubs.test_node_stub": (
        "test_a_node_that_refuses_the_session_fails_the_stub",
    ),
    "tests.fsm.session.test_node_session": (
        "test_a_session_that_moves_leaves_its_link_and_what_waits",
    ),
    "tests.fsm.session.test_stub_client": (
        "test_wherever_a_link_is_it_can_be_lost_or_left",
        "test_an_emptied_session_can_be_lost_or_left_before_everything_is_had_again",
    ),
    "tests.fsm.session.test_possession": (
        "test_a_session_that_is_refused_with_the_proof_is_opened_anew",
        "test_a_node_that_is_silent_after_the_proof_is_given_up",
        "test_a_stub_that_leaves_while_it_proves_is_done",
    ),
    "tests.fsm.bus.test_transactions": ("test_a_request_is_repeated_so_often_and_then_over",),
    "tests.actors.runtime.test_runtime": (
        "test_a_domain_that_does_not_exist_is_404_and_not_to_be_asked_again",
    ),
    "tests.actors.runtime.sync.test_sync_machines": (
        "test_an_observer_that_says_nothing_is_no_refusal",
        "test_deleting_the_object_ends_its_invitations",
        "test_provisional_answers_to_an_invitation_are_relayed_as_they_come",
        "test_the_silence_of_the_reporter_is_a_refusal",
        "test_an_observer_that_leaves_before_the_decision_is_never_admitted",
    ),
    "tests.actors.runtime.sync.observer.test_leased": (
        "test_an_unsubscription_that_is_lost_ends_with_the_lease",
    ),
    "tests.actors.runtime.sync.test_sync_manager": (
        "test_an_object_deleted_while_the_reporter_decides_is_not_found",
    ),
    "tests.actors.node.session.test_sessions": ("test_a_lost_link_detaches_and_keeps_all_tables",),
    "tests.actors.node.registry.test_allocation": (
        "test_a_returning_runtime_claims_its_addresses_and_no_other_runtime_can",
    ),
    "tests.actors.node.sync.test_consent": ("test_these_are_all_paths_of_a_held_path",),
    "tests.actors.node.upstream.test_legacy_plain": (
        "test_the_newest_of_several_connections_has_the_session",
        "test_one_that_does_not_come_back_is_forgotten",
    ),
    "tests.actors.node.registry.test_registry": (
        "test_an_unclaimed_record_ends",
        "test_a_keep_alive_brings_an_expired_record_back",
    ),
    "tests.conformance.play.test_play": ("test_an_object_is_at_its_version_with_its_observers",),
    # What needs odd company happens to the cores alone: steps, and no trace.
    "tests.fsm.sync.test_object_copy": (
        "test_the_histories_of_a_copy_take_every_row_of_its_table_and_no_other",
    ),
    "tests.fsm.group.test_membership": ("test_these_are_all_paths_of_a_membership",),
    "tests.fsm.sync.subscriptions.test_subscriptions": (
        "test_a_path_goes_with_the_last_lease_of_its_runtime",
    ),
    "tests.fsm.registry.resolve.test_p2p_entries": ("test_these_are_all_paths_of_an_entry",),
    "tests.fsm.p2p.test_p2p_ends": (
        "test_a_requester_that_yields_goes_on_where_it_was",
        "test_these_are_all_paths_of_a_dialling_end",
    ),
    "tests.fsm.p2p.test_p2p_controllers": ("test_these_are_all_paths_of_a_controller",),
    "tests.fsm.registry.resolve.test_resolve_jobs": ("test_these_are_all_paths_of_a_search",),
    "tests.actors.node.upstream.test_legacy_session": (
        "test_registrations_of_a_legacy_session_outlive_it",
    ),
    "tests.fsm.registry.test_registration": (
        "test_a_record_may_come_before_it_is_live_and_is_unseen_till_then",
        "test_records_that_never_were_live_die_unreported_with_their_runtime",
        "test_these_are_all_paths_to_a_lasting_record",
    ),
}


@attrs.frozen
class Corpus:
    """What was recorded.

    Attributes:
        traces: Of each machine: what each process reported its entities.
        steps: What was taken.
    """

    traces: Mapping[str, Sequence[Trace]]
    steps: frozenset[TakenStep]


def record() -> Corpus:
    """Play every story."""
    traces: defaultdict[str, list[Trace]] = defaultdict(list)
    steps: Counter[TakenStep] = Counter()
    for module, names in HISTORIES.items():
        for name in names:
            with _tracers() as tracers, counted() as times:
                _play(getattr(import_module(module), name))
            steps += times()
            for number, tracer in enumerate(tracers):
                for machine, trace in _reported(tracer, f"{name}/{number}"):
                    traces[machine].append(trace)
    return Corpus(traces, frozenset(steps))


def _play(history: Callable) -> None:
    if not iscoroutinefunction(history):
        history()
        return
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(history, clock, clock=clock)


@contextmanager
def _tracers() -> Iterator[list[MemoryTracer | AwaitableTracer]]:
    """Every tracer that keeps what it is notified and is made in the body."""
    made: list[MemoryTracer | AwaitableTracer] = []
    kinds: tuple[type[MemoryTracer | AwaitableTracer], ...] = (MemoryTracer, AwaitableTracer)
    with ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(_counting(kind, made))
        yield made


@contextmanager
def _counting(kind, made):
    plain = kind.__init__

    def made_one(self):
        plain(self)
        made.append(self)

    kind.__init__ = made_one
    try:
        yield
    finally:
        kind.__init__ = plain


def _reported(tracer: MemoryTracer | AwaitableTracer, run: str) -> Iterator[tuple[str, Trace]]:
    """Reports of a process on each machine, as a trace that is whole.

    Where a story stops in the middle of things, how its entities end is not judged.
    """
    states = [fact for fact in tracer.facts if fact.k is Kind.STATE]
    for machine in dict.fromkeys(fact.machine for fact in states):
        facts = whole([fact for fact in states if fact.machine == machine])
        trace = [read_record(line) for line in records(facts, run)]
        if judge(trace).verdict is not Verdict.CONFORMANT:
            trace.pop()
        yield machine or "", trace
