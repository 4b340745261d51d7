"""Policy decision point: decides by policies on a message (POL-02, POL-12, POL-14, C-61).

Policies are compiled to functions once, when they are loaded. The functions read only the request,
so the same request gets the same verdict (I-K1); and they answer every request: an unknown result
is `indeterminate`, never an error.

Evaluation of a policy or set stops as soon as its result is certain. The tasks of a decision come
from every element that was evaluated and had that result, the inner ones first (I-K3).
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import attrs

from fsm.policy import model
from fsm.policy.attributes import RESOURCE, Request, subjects
from fsm.policy.terms import Algorithm, Direction, Result


@attrs.frozen(slots=True)
class Verdict:
    """Result of a set, policy or rule for a message.

    Attributes:
        path: The element that decided: `set/policy/rule`; empty: none.
        why: The reason for the refused sender, or the missing attribute, as half a sentence.
        tasks: The tasks that accompany it, in this order.
    """

    result: Result
    path: str = ""
    why: str = ""
    tasks: tuple[model.Task, ...] = ()


Judge: TypeAlias = Callable[[Request], Verdict]

SILENT: Final = Verdict(Result.NOT_APPLICABLE)
"""Verdict if no policy applies."""

_STAMP: Final = "stamp"


class Pdp:
    """Policy decision point for one collection of policies; a new collection needs a new one.

    Attributes:
        book: The policies.
        is_silent: Whether the book has no rules, so that no message need be judged.
        is_stamping: Whether any task stamps messages (POL-13).
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
        """Return the verdict of the policies; if it is `notApplicable`, the default applies.

        A message that names several resources is judged once for each: one denial denies it, and
        one undecided resource leaves it undecided.
        """
        if not self._is_per_resource or request.about is not None:
            return self._judge(request)
        named = subjects(request)
        if len(named) == 1:
            request.known["resource"] = named[0]
            return self._judge(request)
        requests = [about(request, each) for each in named]
        verdict = _of_all([self._judge(each) for each in requests], self.book.default)
        if verdict.result is Result.INDETERMINATE:
            for each in requests:
                request.known.update(
                    {name: None for name in each.known if each.known[name] is None}
                )
        return verdict


def about(request: Request, resource: str | None) -> Request:
    """Return a request that is limited to one of the resources that the message names.

    Args:
        request: The request.
        resource: The resource; None: an entry that is no text.
    """
    known = {name: value for name, value in request.known.items() if name not in RESOURCE}
    return attrs.evolve(request, about=(resource,), known=known)


def _of_all(verdicts: Sequence[Verdict], default: Result) -> Verdict:
    """Return the worst of several verdicts, with the tasks of all that are equal to it."""
    worse_first = [Result.DENY, Result.INDETERMINATE]
    if default is Result.DENY:
        worse_first.append(Result.NOT_APPLICABLE)
    for result in (*worse_first, Result.PERMIT):
        matching = [verdict for verdict in verdicts if verdict.result is result]
        if matching:
            # Two elements may have equal tasks; each is done once.
            tasks = {id(task): task for item in matching for task in item.tasks}
            return attrs.evolve(matching[0], tasks=tuple(tasks.values()))
    return SILENT


# ---- elements


def judge_of(element: model.Element, path: str) -> Judge:
    """Return a function that judges by a rule, a policy or a set.

    It checks direction and target first, and adds the element's actions to a decision.

    Args:
        element: The element.
        path: Its full name: `set/policy/rule`.
    """
    effect, duties = element.effect, element.duties
    if effect is None:
        parts = model.in_order(element.parts)
        inner = _combine(element.combining, [judge_of(part, f"{path}/{part.id}") for part in parts])
        judge = _dutiful(duties, inner) if duties else inner
    else:
        verdict = Verdict(effect, path, element.reason, duties.get(effect, ()))
        judge = _with_target(element.condition, _unsure(path, "condition"), lambda _: verdict)
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
    """Return a function that combines verdicts so that one result prevails over its opposite.

    An undecided part might be a denial: it ranks before a permission and after a denial.
    """

    def judge(request: Request) -> Verdict:
        contrary: Verdict | None = None
        undecided: Verdict | None = None
        for each in judges:
            verdict = each(request)
            if verdict.result is stronger:
                return verdict
            if verdict.result is weaker:
                contrary = _join_verdicts(contrary, verdict)
            elif verdict.result is Result.INDETERMINATE:
                undecided = undecided or verdict
        return (contrary or undecided if weaker is Result.DENY else undecided or contrary) or SILENT

    return judge


def _first_applicable(judges: Sequence[Judge]) -> Judge:
    """Return a function that returns the first applicable verdict, even an undecided one."""

    def judge(request: Request) -> Verdict:
        for each in judges:
            verdict = each(request)
            if verdict.result is not Result.NOT_APPLICABLE:
                return verdict
        return SILENT

    return judge


def _join_verdicts(first: Verdict | None, second: Verdict) -> Verdict:
    """Return the first of two equal results, with the tasks of both."""
    if first is None:
        return second
    return attrs.evolve(first, tasks=first.tasks + second.tasks) if second.tasks else first
