"""Records an explored composition: what becomes of each place, and all that its cores do."""

from fsm.explore.composition import Call
from fsm.explore.compositions.catalogue import COMPOSITIONS
from fsm.explore.explorer import explore
from fsm.explore.steps import Reaction, Steps
from tests.golden.form import Part, body_text, plain
from tests.golden.notes import Notes


def record_composition(name: str) -> Part:
    """Explore a composition, and record it.

    The order in which states are found is of the explorer: lines are sorted, each is there once.
    """
    seen: set[tuple[str, str, str]] = set()
    notes = Notes()
    sound = Steps._react

    def react(steps: Steps, place: int, number: int, token) -> Reaction:
        reaction = sound(steps, place, number, token)
        given = steps.input((token[0], token[1], token[2]))
        seen.update(_lines(steps, list(steps.composition.places)[place], given, reaction, notes))
        return reaction

    Steps._react = react
    try:
        found = explore(COMPOSITIONS[name])
    finally:
        Steps._react = sound
    for grade, subject, line in sorted(seen):
        notes.add(grade, subject, line)
    notes.add(
        "figures", name, f"{found.states} states, {found.transitions} steps, {found.ends} ends"
    )
    for finding in found.findings:
        notes.add("users", name, f"{finding.fault.value} {finding.subject}")
    notes.add("users", name, "holds" if found.holds else "does not hold")
    return notes.part()


def _lines(steps: Steps, place: str, given: Call | None, reaction: Reaction, notes: Notes):
    moved = [plain(one, notes.ids) for one in reaction.moved]
    sent = steps.messages_of(reaction)
    whole = steps.composition
    for step in moved:
        yield "moves", place, str(step)
    for one in sent:
        wire = whole.wire(one.channel, one.message)
        if wire is not None:
            yield "moves", f"{place} says", f"{wire.hop} {body_text(wire.message)}"
    refused = reaction.undeclared or reaction.broken
    did = [*moved, *(f"{one.channel}: {_text(one.message, notes)}" for one in sent), refused]
    got = "deadline" if given is None else _text(given, notes)
    yield "cores", place, f"{got} {body_text([one for one in did if one])}"


def _text(call: Call, notes: Notes) -> str:
    return body_text({call.name: plain(call.args, notes.ids)})
