"""The catalogue of claims is whole."""

from collections import Counter

from specs.claims import CATALOGUE, CLAIMS, Reach

SIZES = {
    "T": 12, "B": 12, "L": 6, "R": 10, "S": 11, "P": 22, "C": 6,
    "A": 7, "M": 18, "D": 12, "G": 6, "K": 4, "X": 3,
}  # fmt: skip


def test_there_are_129_claims_each_with_its_own_label():
    assert len(CATALOGUE) == len(CLAIMS) == 129


def test_every_family_counts_from_one_without_gaps():
    families = Counter(claim.id[2] for claim in CATALOGUE)
    assert dict(families) == SIZES
    expected = [f"I-{family}{n}" for family, size in SIZES.items() for n in range(1, size + 1)]
    assert [claim.id for claim in CATALOGUE] == expected


def test_names_and_sentences_are_distinct_and_short():
    assert len({claim.name for claim in CATALOGUE}) == 129
    assert len({claim.text for claim in CATALOGUE}) == 129
    assert all(10 < len(claim.text) < 100 and claim.text[-1] != "." for claim in CATALOGUE)


def test_every_kind_of_claim_occurs():
    assert {claim.reach for claim in CATALOGUE} == set(Reach)
