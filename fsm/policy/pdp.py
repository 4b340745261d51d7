"""The decision of policies on a message (POL-02, POL-12, POL-14, C-61).

Everything is made into functions once, when policies are loaded. They read the
request and nothing else, so the same request gets the same verdict (I-K1); and they
answer every request: what cannot be known is `indeterminate`, never an error.

Evaluation stops as soon as the result of a level is certain. What is to be done along
with a decision comes from every element that was evaluated and had that result, the
inner ones first (I-K3).
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import attrs

from fsm.policy import model
from fsm.policy.attributes import RESOURCE, Request, subjects
from fsm.policy.terms import Algorithm, Direction, Result


@attrs.frozen(slots=True)
class Verdict:
    """The result of one element for a message.

    Attributes:
        path: The element that decided: `set/policy/rule`; empty: none did.
        why: Half a sentence: for the refused sender, or what could not be known.
        tasks: What is to be done along with it, in this order.
    """

    result: Result
    path: str = ""
    why: str = ""
    tasks: tuple[model.Task, ...] = ()


Judge: TypeAlias = Callable[[Request], Verdict]

SILENT: Final = Verdict(Result.NOT_APPLICABLE)
"""Nothing applies."""

_STAMP: Final = "stamp"


class Pdp:
    """Judges by one book; made anew for each version of it.

    Attributes:
        book: What it judges by.
        is_silent: Whether nothing stands in it: no message need be looked at.
        is_stamping: Whether anything in it stamps messages (POL-13).
    """

    def __init__(self, book: model.Book) -> None:
        self.book = book
        judges = [judge_of(each, each.id) for each in model.in_order(book.sets)]
        self._judge = _combine(book.combining, judges)
        leaves = (leaf for each in book.sets for leaf in each.conditions())
        self._is_per_resource = any(leaf.attribute.name in RESOURCE for leaf in leaves)
        self.is_silent = not book.sets
        elements = (element for each in book.sets for _, element in each.walk())
        duties = (tasks for element in elements for tasks in element.duties.values())
        self.is_stamping = any(task.do == _STAMP for tasks in duties for task in tasks)

    def decide(self, request: Request) -> Verdict:
        """Return the result of the policies; with `notApplicable` the default holds.

        A message that names several resources is judged once for each: one that is
        denied denies it, one that cannot be decided leaves it undecided.
        """
        if not self._is_per_resource or request.about is not None:
            return self._judge(request)
        named = subjects(request)
        if len(named) == 1:
            request.known["resource"] = named[0]
            return self._judge(request)
        alone = [about(request, each) for each in named]
        verdict = _of_all([self._judge(each) for each in alone], self.book.default)
        if verdict.result is Result.INDETERMINATE:
            for each in alone:
                request.known.update(
                    {name: None for name in each.known if each.known[name] is None}
                )
        return verdict


def about(request: Request, resource: str | None) -> Request:
    """Return a request as if the message named one resource only.

    Args:
        request: The request.
        resource: The resource; None: it names none.
    """
    known = {name: value for name, value in request.known.items() if name not in RESOURCE}
    return attrs.evolve(request, about=(resource,), known=known)


def _of_all(verdicts: Sequence[Verdict], default: Result) -> Verdict:
    """Return what holds for all resources: the worst, with the tasks of all with this result."""
    bad = [Result.DENY, Result.INDETERMINATE]
    if default is Result.DENY:
        bad.append(Result.NOT_APPLICABLE)
    for result in (*bad, Result.PERMIT):
        found = [verdict for verdict in verdicts if verdict.result is result]
        if found:
            # Two elements may have a task that reads the same; each is done once.
            tasks = {id(task): task for item in found for task in item.tasks}
            return attrs.evolve(found[0], tasks=tuple(tasks.values()))
    return SILENT


# ---- elements


def judge_of(element: model.Element, path: str) -> Judge:
    """Return what judges by a rule, a policy or a set.

    It looks at direction and target first, and adds the tasks of the element.

    Args:
        element: The element.
        path: How it is called from outside: `set/policy/rule`.
    """
    effect, duties = element.effect, element.duties
    if effect is None:
        parts = model.in_order(element.parts)
        inner = _combine(element.combining, [judge_of(part, f"{path}/{part.id}") for part in parts])
        judge = _dutiful(duties, inner) if duties else inner
    else:
        says = Verdict(effect, path, element.reason, duties.get(effect, ()))
        judge = _with_target(element.condition, _unsure(path, "condition"), lambda _: says)
    judge = _with_target(element.target, _unsure(path, "target"), judge)
    if element.direction is not Direction.BOTH:
        judge = _with_direction(element.direction is Direction.OUT, judge)
    return judge


def _unsure(path: str, part: str) -> Verdict:
    why = f"the {part} of {path} cannot be decided"
    return Verdict(Result.INDETERMINATE, path, why)


def _dutiful(duties: model.Duties, inner: Judge) -> Judge:
    def judge(request: Request) -> Verdict:
        verdict = inner(request)
        tasks = duties.get(verdict.result)
        return attrs.evolve(verdict, tasks=verdict.tasks + tasks) if tasks else verdict

    return judge


def _with_target(target: model.Condition, unsure: Verdict, inner: Judge) -> Judge:
    check = model.check_of(target)
    if check is None:
        return inner

    def judge(request: Request) -> Verdict:
        outcome = check(request)
        if outcome is None:
            return unsure
        return inner(request) if outcome else SILENT

    return judge


def _with_direction(is_outgoing: bool, inner: Judge) -> Judge:  # noqa: FBT001 - a value, no switch
    return lambda request: inner(request) if request.is_outgoing is is_outgoing else SILENT


# ---- combining algorithms


def _combine(algorithm: Algorithm, judges: Sequence[Judge]) -> Judge:
    if len(judges) == 1:
        return judges[0]
    match algorithm:
        case Algorithm.DENY_OVERRIDES:
            return _overrides(judges, Result.DENY, Result.PERMIT)
        case Algorithm.PERMIT_OVERRIDES:
            return _overrides(judges, Result.PERMIT, Result.DENY)
        case Algorithm.FIRST_APPLICABLE:
            return _first_applicable(judges)


def _overrides(judges: Sequence[Judge], stronger: Result, weaker: Result) -> Judge:
    """One result prevails over the contrary one.

    What cannot be decided might be a denial: it comes before a permission, and behind a denial.
    """

    def judge(request: Request) -> Verdict:
        other: Verdict | None = None
        unsure: Verdict | None = None
        for each in judges:
            verdict = each(request)
            if verdict.result is stronger:
                return verdict
            if verdict.result is weaker:
                other = _join_verdicts(other, verdict)
            elif verdict.result is Result.INDETERMINATE:
                unsure = unsure or verdict
        return (other or unsure if weaker is Result.DENY else unsure or other) or SILENT

    return judge


def _first_applicable(judges: Sequence[Judge]) -> Judge:
    """The first that says anything decides, also if it says that it cannot be decided."""

    def judge(request: Request) -> Verdict:
        for each in judges:
            verdict = each(request)
            if verdict.result is not Result.NOT_APPLICABLE:
                return verdict
        return SILENT

    return judge


def _join_verdicts(first: Verdict | None, other: Verdict) -> Verdict:
    """Return the first of the agreeing results, with the tasks of both."""
    if first is None:
        return other
    return attrs.evolve(first, tasks=first.tasks + other.tasks) if other.tasks else first
