"""What each wire form can do, and what a form that cannot does instead.

The tests of `tests/conformance` run for every form; this table is the only reason not
to. A row of what is lacking names the test that shows what happens instead.
"""

from collections.abc import Callable
from typing import Final, TypeVar

F = TypeVar("F", bound=Callable[..., object])

WIRE_FORMS: Final = ("link", "plain", "session", "rest")

OWN_FORMS: Final = frozenset({"link", "rest"})
"""Those in which our own stubs speak: normal form, whatever is heard."""

LACKS: Final[dict[tuple[str, str], str]] = {
    ("a token", "plain"): "test_sessions.test_the_plain_form_has_its_url_and_no_token",
    ("re-open", "plain"): "test_sessions.test_a_new_plain_session_takes_the_old_one_over",
    ("an answer to close", "plain"): "test_connect.test_leaving_closes_the_link_and_the_session",
    ("an answer to close", "session"): "test_connect.test_leaving_closes_the_link_and_the_session",
    (
        "ping by control",
        "plain",
    ): "test_sessions.test_upstreams_forms_are_alive_as_long_as_their_link",
    (
        "ping by control",
        "session",
    ): "test_sessions.test_upstreams_forms_are_alive_as_long_as_their_link",
    (
        "records that end with the session",
        "plain",
    ): "test_lasting_records.test_a_record_registered_in_upstreams_forms_outlives_the_session",
    (
        "records that end with the session",
        "session",
    ): "test_lasting_records.test_a_record_registered_in_upstreams_forms_outlives_the_session",
    (
        "several messages a frame",
        "plain",
    ): "test_connect.test_upstreams_forms_hold_one_message_a_frame",
    (
        "several messages a frame",
        "session",
    ): "test_connect.test_upstreams_forms_hold_one_message_a_frame",
    ("frames of WebSocket", "rest"): "test_rest.test_an_invalid_http_request_is_refused",
    ("a link that a large frame ends", "rest"): "test_rest.test_a_large_body_is_refused",
    ("a link that its token leaves", "rest"): (
        "test_rest.test_a_session_may_go_on_over_another_form"
    ),
    ("a link before its session", "rest"): "test_rest.test_each_open_is_a_link_of_its_own",
}
"""Ability and form: the test of what happens instead."""


def needs(*abilities: str) -> Callable[[F], F]:
    """Run a test only for the forms that can do this."""
    known = {ability for ability, _ in LACKS}
    assert known.issuperset(abilities), f"{set(abilities) - known} stand in no row"

    def mark(test: F) -> F:
        test.needs = frozenset(abilities)  # type: ignore[attr-defined]
        return test

    return mark


def forms_for(abilities: frozenset[str]) -> list[str]:
    return [form for form in WIRE_FORMS if all((one, form) not in LACKS for one in abilities)]
