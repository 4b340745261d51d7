"""The parts of the browser runtime that decide, in Node.js."""

import json
import os
import subprocess
from pathlib import Path
from random import Random

from tests.web.assertion_cases import assertion_cases
from tests.web.golden import golden
from tests.web.npm import needs_node

HERE = Path(__file__).parent


def node_test(name: str, **more: str) -> None:
    done = subprocess.run(  # noqa: S603 - ours
        ["node", "--test", "--test-reporter=spec", str(HERE / name)],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | more,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]


@needs_node
def test_it_makes_of_addresses_messages_machines_and_sessions_what_python_makes_of_them(tmp_path):
    file = tmp_path / "golden.json"
    file.write_text(json.dumps(golden()))
    node_test("golden.test.js", GOLDEN=str(file))
    node_test("lines.test.js", GOLDEN=str(file))


@needs_node
def test_it_bears_a_node_that_is_slow_forgets_refuses_or_means_harm():
    node_test("node.test.js")


@needs_node
def test_each_attempt_to_create_a_child_is_about_the_same_child():
    """SYN-24: an earlier attempt may have created it, whatever a router answered."""
    node_test("children_again.test.js")


@needs_node
def test_its_link_its_requests_and_its_copies_of_objects_are_as_a_node_and_peers_see_them():
    for name in ("page_link", "requests", "copies", "observers", "reporters", "records", "states"):
        node_test(f"{name}.test.js")


@needs_node
def test_its_registry_sets_direct_links_up_and_lets_peers_send_what_is_theirs():
    node_test("links.test.js")
    node_test("link_parts.test.js")
    node_test("link_rights.test.js")
    node_test("link_stubs.test.js")


@needs_node
def test_it_takes_the_part_of_a_runtime_in_scenarios_of_the_protocol():
    node_test("scenarios.test.js")


@needs_node
def test_a_hyperty_in_a_worker_has_data_objects_of_its_own_and_none_of_others():
    node_test("worker.test.js")


@needs_node
def test_a_worker_with_its_port_in_its_hands_harms_neither_page_nor_objects_nor_session():
    node_test("worker_port.test.js")


@needs_node
def test_values_that_nobody_expects_are_borne_wherever_they_come_from():
    node_test("odd_values.test.js")


@needs_node
def test_a_page_believes_of_peers_what_programs_believe_of_identity_providers(tmp_path):
    file = tmp_path / "assertions.json"
    file.write_text(json.dumps(assertion_cases(Random(7), 300)))  # noqa: S311
    node_test("issuers.test.js", GOLDEN=str(file))
