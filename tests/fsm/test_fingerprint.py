"""The hash of a machine: the same for the same rows, another for any other (T12, T23)."""

from hashlib import sha256

import attrs
import pytest

from fsm.machine_list import MACHINES, fingerprint, fingerprints
from fsm.machines.stub_connection import STUB_CONNECTION
from fsm.machines.stub_deployment import STUB_DEPLOYMENT


def test_every_machine_has_a_hash_of_its_own():
    known = fingerprints(MACHINES.values())
    assert len(known) == len(MACHINES)
    assert all(len(one) == 64 for one in known)
    assert known[fingerprint(STUB_CONNECTION)] is STUB_CONNECTION


@pytest.mark.parametrize(
    "change",
    [
        {"rows": STUB_CONNECTION.rows[:-1]},
        {"may_end": frozenset(list(STUB_CONNECTION.may_end)[:-1]), "extension_ends": frozenset()},
        {"name": "other"},
    ],
    ids=["row", "end", "name"],
)
def test_deciding_data_changes_the_fingerprint(change):
    changed = attrs.evolve(STUB_CONNECTION, deadlines=(), **change)
    assert fingerprint(changed) != fingerprint(STUB_CONNECTION)


def test_texts_for_people_do_not_change_the_fingerprint():
    rows = tuple(reversed([attrs.evolve(row, cite="elsewhere") for row in STUB_CONNECTION.rows]))
    changed = attrs.evolve(STUB_CONNECTION, rows=rows, meanings={}, owner="x", drawn_in="y")
    assert fingerprint(changed) == fingerprint(STUB_CONNECTION)


def test_a_fingerprint_is_the_hash_of_the_listed_facts():
    """Others sign it, so how it is made must not change: here it is made by hand."""
    text = (
        '{"machine":"stub_deployment","may_end":["deployed","deployment-failed"],'
        '"rows":[["[*]","load","deploying",[],[]],'
        '["deploying","load-failed","deployment-failed",[],[]],'
        '["deploying","loaded","deployed",[],[]]],'
        '"states":["deployed","deploying","deployment-failed"]}'
    )
    assert fingerprint(STUB_DEPLOYMENT) == sha256(text.encode()).hexdigest()
