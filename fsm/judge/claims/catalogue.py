"""The claims about messages, tables and links, and the function that judges each.

The claims about machines are judged by `fsm.judge.replay`. For every claim that the records
of a trace cannot decide, `fsm.judge.claims.not_judged` says what is lacking.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from fsm.judge.claims import (
    admission,
    buses,
    fan_out,
    links,
    loops,
    objects,
    resolution,
    sessions,
    stubs,
    transactions,
)
from fsm.judge.claims import links as link_routes
from fsm.judge.claims import links as link_traffic
from fsm.judge.claims import objects as object_guests
from fsm.judge.claims import objects as object_values
from fsm.judge.claims import resolution as changes
from fsm.judge.claims import sessions as addresses
from fsm.judge.claims.finding import Finding
from fsm.judge.claims.told import NodeTrace, Trace, read_trace
from fsm.judge.trace_line import TraceLine
from specs.claims.all import CLAIMS

__all__ = ["CLAIMS_JUDGED", "Check", "judge"]

Check: TypeAlias = Callable[[Trace], Iterator[Finding]]
"""Yields what breaks one claim."""


def _each(check: Callable[[NodeTrace], Iterator[Finding]]) -> Check:
    """Judge node by node."""

    def checked(trace: Trace) -> Iterator[Finding]:
        for node in trace.nodes:
            yield from check(node)

    return checked


CLAIMS_JUDGED: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "I-T1": _each(transactions.match),
        "I-T2": _each(transactions.one_final),
        "I-T3": _each(transactions.eventual_final),
        "I-T4": _each(transactions.no_late_provisional),
        "I-T5": _each(transactions.late_dropped),
        "I-T6": _each(transactions.timeout_justified),
        "I-T7": _each(transactions.id_monotone),
        "I-T8": _each(transactions.retry_identity),
        "I-T9": _each(transactions.conservation),
        "I-T10": _each(transactions.normal_form),
        "I-B1": _each(buses.registered),
        "I-B2": _each(buses.full_fan_out),
        "I-B3": _each(buses.order_of_listeners),
        "I-B4": _each(buses.callback_exclusive),
        "I-B5": _each(buses.no_wildcard),
        "I-B6": _each(buses.resolve_only_if_needed),
        "I-B7": buses.fifo,
        "I-B8": _each(admission.authorise_first),
        "I-B9": _each(admission.denied_is_dead),
        "I-B10": _each(admission.source_authenticity),
        "I-B11": _each(admission.sandbox_isolation),
        "I-B12": _each(admission.undeliverable_answered),
        "I-L1": _each(loops.via_is_a_set),
        "I-L2": _each(loops.no_reentry),
        "I-L3": loops.append_only,
        "I-L4": _each(loops.hop_bound),
        "I-L5": _each(loops.no_echo),
        "I-R1": _each(resolution.backend),
        "I-R2": _each(resolution.live_only),
        "I-R3": _each(resolution.preference),
        "I-R4": _each(resolution.set_up_goes_on),
        "I-R5": _each(resolution.right_node_stub),
        "I-R6": _each(resolution.single_flight),
        "I-R7": _each(resolution.termination),
        "I-R9": _each(resolution.fallback_keeps),
        "I-S3": _each(stubs.status_shape),
        "I-S4": _each(stubs.event_for_change),
        "I-S5": _each(stubs.table_agrees),
        "I-S6": _each(stubs.unique),
        "I-S7": _each(stubs.deploy_before_run),
        "I-S8": _each(stubs.transmit_when_live),
        "I-S9": _each(stubs.queue_order),
        "I-P4": links.agreement,
        "I-P5": links.side_order,
        "I-P6": _each(links.unique_pair),
        "I-P7": _each(links.no_second_set_up),
        "I-P8": _each(links.one_entry),
        "I-P11": _each(links.single_reporter),
        "I-P12": _each(links.object_per_requester),
        "I-P13": _each(link_traffic.signalling_off_link),
        "I-P14": _each(link_traffic.transmit_when_live),
        "I-P15": link_traffic.fifo,
        "I-P16": link_traffic.integrity,
        "I-P17": _each(link_routes.registration_order),
        "I-P18": _each(link_routes.route_needs_listener),
        "I-P19": _each(link_routes.unbind),
        "I-P20": _each(links.glare),
        "I-P21": _each(link_traffic.silent_after_close),
        "I-P22": _each(link_traffic.exactly_once),
        "I-C1": _each(changes.window),
        "I-C5": _each(changes.torn_down),
        "I-A1": _each(addresses.fresh),
        "I-A2": _each(addresses.used_while_allocated),
        "I-A3": _each(addresses.owner),
        "I-A7": _each(addresses.session_end),
        "I-M1": _each(sessions.session_first),
        "I-M2": _each(sessions.one_per_runtime),
        "I-M3": _each(sessions.state_survives),
        "I-M4": _each(sessions.nothing_after_close),
        "I-M5": _each(fan_out.fan_out_exact),
        "I-M7": _each(fan_out.none_after_unsubscribe),
        "I-M8": _each(sessions.policy_once),
        "I-M11": _each(fan_out.relay_fidelity),
        "I-M12": _each(sessions.expiry_timing),
        "I-M13": _each(fan_out.who_answers),
        "I-M14": _each(fan_out.order_per_object),
        "I-D1": _each(objects.single_writer),
        "I-D2": _each(objects.versions),
        "I-D3": _each(objects.monotone),
        "I-D4": object_values.agreement,
        "I-D5": _each(objects.snapshot_first),
        "I-D6": _each(object_guests.no_lost_window),
        "I-D7": _each(objects.unsubscribed_stops),
        "I-D8": _each(object_values.nothing_after_delete),
        "I-D9": _each(object_guests.authorised),
        "I-D10": _each(object_values.child_owner),
        "I-D11": _each(object_guests.invited_by_reporter),
        "I-D12": _each(objects.once),
        "I-K4": _each(sessions.fail_closed),
        "I-X2": _each(addresses.clean_at_rest),
    }
)
"""The check of each claim that can be judged, by the claim's id."""


def judge(records: Iterable[TraceLine]) -> tuple[Finding, ...]:
    """Return what breaks a claim: by claim, in the order of the catalogue, then by record.

    Args:
        records: Of any number of processes, in any order. Claims across processes need
            the records of all that took part.
    """
    trace = read_trace(records)
    return tuple(
        finding
        for claim in CLAIMS
        if claim in CLAIMS_JUDGED
        for finding in sorted(CLAIMS_JUDGED[claim](trace))
    )
