"""Tests with compiled modules: which modules are compiled, and what is left out."""

import runpy
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from bench.compiled import ROOT

COMPILED = {
    name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ROOT / name
    for name in runpy.run_path(str(ROOT / "setup.py"))["COMPILED"]
}
"""The modules, and their sources."""

LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "they replace a function, method or constant, which compiled callers do not look up": (
        "tests/actors/kit/test_self_check.py::test_a_bus_that_answers_twice_is_found_without_a_trace",
        "tests/actors/node/bus/test_one_writing.py::test_a_message_is_encoded_once_more_for_each_wire_form",
        "tests/actors/node/bus/test_one_writing.py::test_an_update_to_a_thousand_observers_is_written_once",
        "tests/actors/node/session/test_fan_outs.py::test_a_message_to_one_session_does_not_overtake_one_to_many",
        "tests/actors/node/session/test_fan_outs.py::test_a_node_that_stops_hands_all_over",
        "tests/actors/node/session/test_fan_outs.py::test_a_session_that_is_closed_gets_what_was_published_before",
        "tests/actors/node/session/test_fan_outs.py::test_a_session_that_is_over_gets_nothing_any_more",
        "tests/actors/node/session/test_fan_outs.py::test_all_sessions_of_a_node_get_all_messages_in_order",
        "tests/actors/node/session/test_fan_outs.py::test_an_answer_of_the_node_does_not_overtake_what_was_published_before",
        "tests/actors/node/session/test_fan_outs.py::test_outboxes_are_filled_some_at_a_time",
        "tests/actors/node/test_model.py::test_a_node_with_a_fault_differs_soon[the second",
        "tests/actors/runtime/bus/test_bus_conservation.py::test_a_vanished_message_is_noticed",
        "tests/actors/runtime/test_monitor.py::test_a_core_part_that_missteps_ends_the_runtime",
        "tests/conformance/test_mutants.py",
        "tests/fuzz/test_conservation.py::test_an_attack_finds_a_seeded_fault[a_loss_now_and_then]",
        "tests/simulation/test_defects.py::test_each_defect_is_found[no patience ever ends]",
        "tests/simulation/test_defects.py::test_each_defect_is_found[repeats are let in]",
    ),
    "their classes derive from compiled ones": (
        "tests/actors/kit/supervision/test_stop.py::test_an_ask_is_no_dead_letter_its_asker_knows",
        "tests/actors/kit/supervision/test_stop.py::test_an_unhandled_message_is_a_dead_letter",
        "tests/actors/node/isolation/test_isolation.py::test_an_acceptor_publishes_no_extra_facts_by_default",
        "tests/specs/dialects/test_dialect.py::test_a_link_learns_the_same_whether_or_not_it_has_seen_the_like",
        "tests/transports/test_codec_plain.py::test_a_peer_of_upstream_is_read_and_learnt_from_alike",
    ),
    "they pass an object of another class than the one that is declared": (
        "tests/actors/node/bus/test_remembered_routing.py::test_it_is_asked_once_for_the_same_ends_until_something_changes",
    ),
    "they read the fields of an object by vars(), or assign to a final one": (
        "tests/actors/node/policy/test_policy_obligations.py::test_an_obligation_after_a_denial_follows_its_answer",
        "tests/actors/node/policy/test_policy_obligations.py::test_an_obligation_after_a_permission_follows_the_message",
        "tests/actors/node/session/test_fan_outs.py::test_a_message_with_more_than_an_outbox_holds_is_not_written",
        "tests/actors/node/session/test_fan_outs.py::test_a_session_that_ends_while_it_is_given_messages",
        "tests/actors/node/session/test_fan_outs.py::test_a_session_that_fails_leads_to_messages_for_many",
        "tests/actors/node/session/test_fan_outs.py::test_what_a_failing_session_is_answered_comes_behind",
        "tests/actors/node/session/test_runtime_names.py::test_runtimes_that_come_and_go_leave_no_row_in_any_table",
    ),
}
"""Beginnings of the names of tests, by what a compiled module cannot do."""


def pytest_configure():
    """Refuse to run with a module whose source was imported."""
    files = {name: str(import_module(name).__file__) for name in COMPILED}
    sources = [name for name, file in files.items() if not file.endswith(EXTENSION_SUFFIXES[0])]
    if sources:
        raise pytest.UsageError(f"not compiled: {', '.join(sources)}")


def pytest_report_header():
    lines = [f"{len(COMPILED)} compiled modules; left out:"]
    for reason, tests in LEFT_OUT.items():
        lines += [f"  {reason}:", *(f"    {one}" for one in tests)]
    return lines


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what is named; a name that no test of a whole file has is an error."""
    names = [one for tests in LEFT_OUT.values() for one in tests]
    left_out = [item for item in items if item.nodeid.startswith(tuple(names))]
    files = {item.nodeid.partition("::")[0] for item in items}
    for name in names:
        is_there = any(item.nodeid.startswith(name) for item in left_out)
        if name.partition("::")[0] in files and not is_there and "::" not in str(config.args):
            raise pytest.UsageError(f"no test is named {name}")
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
