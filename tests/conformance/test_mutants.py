"""The suite can fail: a node with one fault is found by the test that is about it."""

from importlib import import_module

import pytest
import trio

from tests.conformance.node_mutant import FAULTS
from tests.support.node.node_process import DOMAIN, UNHURRIED, node_process
from tests.support.wire.wire_guests import Joining
from tests.support.wire.wire_socket import Left

FOUND_BY = {
    "no_owner_check": (
        "bus.test_ownership",
        "test_forged_events_are_neither_delivered_nor_answered",
    ),
    "changes_return_to_the_publisher": (
        "sync.test_subscription",
        "test_the_publisher_is_not_sent_its_own_changes",
    ),
    "the_second_subscriber_is_missed": ("sync.test_subscription", "test_fan_out_is_exact"),
    "another_code_for_unknown_addresses": (
        "session.test_connect",
        "test_leaving_closes_the_link_and_the_session",
    ),
    "nothing_is_released": (
        "session.test_sessions",
        "test_a_close_releases_everything_and_harms_no_other",
    ),
    "unsubscribing_does_nothing": (
        "sync.test_subscription",
        "test_an_unsubscribed_observer_receives_nothing_more",
    ),
    "any_session_may_free": (
        "registry.test_hyperty_allocation",
        "test_a_session_that_does_not_own_the_whole_list_frees_nothing",
    ),
    "any_token_will_do": (
        "session.test_sessions",
        "test_an_open_without_the_token_takes_no_foreign_session",
    ),
    "no_consent_is_required": (
        "bus.test_ownership",
        "test_consent_by_another_session_does_not_count",
    ),
    "circles_go_on": ("bus.test_routing", "test_a_circle_is_broken"),
    "queued_messages_are_reversed": (
        "session.test_sessions",
        "test_a_resumed_session_has_its_addresses",
    ),
    "one_wire_form_for_all_peers": (
        "session.test_connect",
        "test_an_answer_has_the_ends_swapped_and_the_id_as_it_came",
    ),
    "answers_come_from_the_asker": (
        "registry.test_hyperty_allocation",
        "test_the_answer_comes_from_where_it_was_asked",
    ),
    "freed_addresses_stay": (
        "registry.test_hyperty_allocation",
        "test_freeing_a_list_frees_exactly_that",
    ),
}
"""Fault, and the module and test that finds it."""

FORM = {"one_wire_form_for_all_peers": "session"}
"""The form that shows it, where ours does not."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_found_by_the_test_that_is_about_it(tmp_path, fault):
    """C8: what the suite says of a node that is sound is not said of this one."""
    module, name = FOUND_BY[fault]
    test = getattr(import_module(f"tests.conformance.{module}"), name)
    launcher = ("-m", "tests.conformance.node_mutant", fault)
    options = ("--domain", DOMAIN, "--allow-legacy", *UNHURRIED)
    with node_process(tmp_path / "log", *options, launcher=launcher) as node:
        joining = Joining(node, FORM.get(fault, "link"))
        async with joining.stack:
            with pytest.raises((AssertionError, pytest.fail.Exception, trio.TooSlowError, Left)):
                await test(joining)
