"""Drawings as programs of others read them."""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest
from statemachine import StateChart
from statemachine.exceptions import TransitionNotAllowed
from statemachine.io import load

from fsm.drawing.draw import Format, draw, node_name
from fsm.machine_list import MACHINES
from fsm.static_check import shortest_paths

TABLES = [pytest.param(table, id=table.name) for table in MACHINES.values()]
PLANTUML = shutil.which("plantuml")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MERMAID = os.environ.get("MERMAID_JS", "")


def cases(table):
    conditions = list(table.conditions)
    return [set(some) for n in range(len(conditions) + 1) for some in combinations(conditions, n)]


def fields(table, true):
    """The conditions as fields of an event's data."""
    return {node_name(one): one in true for one in table.conditions}


def run(command):
    return subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - ours


def where(machine):
    (state,) = machine.configuration
    return state.id


def brought_to(kind, table, state):
    machine = kind()
    for row in shortest_paths(table)[state]:
        send(machine, row.trigger, fields(table, row.guard.when))
    return machine


def send(machine, trigger, given):
    # Not machine.send: one of our triggers has that name, and the reader makes it a method.
    StateChart.send(machine, trigger.value, **given)


def pushed(machine, trigger, given):
    """Where a trigger leads; a machine that is over, or does not know it, stays."""
    with suppress(TransitionNotAllowed):
        send(machine, trigger, given)
    return where(machine)


@pytest.mark.parametrize("table", TABLES)
def test_an_scxml_engine_steps_as_the_table(table):
    """Every state, trigger and case of the conditions, by python-statemachine's SCXML reader."""
    kind = load(draw(table, Format.SCXML), format="scxml")
    reported, led = {}, {}
    for state in table.states:
        for trigger in table.triggers:
            for number, true in enumerate(cases(table)):
                rows = [r for r in table.rows_for(state, trigger) if r.guard.holds(true)]
                case = state, trigger, number
                reported[case] = node_name(rows[0].target if rows else state)
                led[case] = pushed(brought_to(kind, table, state), trigger, fields(table, true))
    assert led == reported


@pytest.mark.skipif(PLANTUML is None, reason="no plantuml on PATH")
@pytest.mark.timeout(240)
def test_plantuml_parses_every_machine(tmp_path):
    for table in MACHINES.values():
        (tmp_path / f"{table.name}.puml").write_text(draw(table, Format.PLANTUML))
    files = sorted(map(str, tmp_path.glob("*.puml")))
    options = ["-headless", "-checkonly"]
    done = run([PLANTUML, *options, *files])

    assert (done.returncode, done.stderr.decode()) == (0, "")


@pytest.mark.skipif(PLANTUML is None, reason="no plantuml on PATH")
@pytest.mark.timeout(240)
def test_plantuml_refuses_what_it_does_not_understand(tmp_path):
    drawing = draw(MACHINES["address"], Format.PLANTUML).replace("-->", "--> -->")
    (tmp_path / "bad.puml").write_text(drawing)
    command = [PLANTUML, "-headless", "-checkonly", str(tmp_path / "bad.puml")]

    assert run(command).returncode != 0


PAGE = """<!doctype html><meta charset=utf-8><body><script src="{library}"></script><script>
mermaid.initialize({{startOnLoad: false}});
mermaid.render("drawing", {drawing!r}).then(
  ({{svg}}) => {{ document.body.innerHTML = svg; }},
  (error) => {{ document.body.textContent = "refused: " + error; }});
</script>"""


def browsed(tmp_path, drawing):
    """What a browser makes of a Mermaid drawing."""
    page = tmp_path / "page.html"
    page.write_text(PAGE.format(library=Path(MERMAID).resolve().as_uri(), drawing=drawing))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    options += [f"--user-data-dir={tmp_path}/profile", "--dump-dom"]
    command = [CHROMIUM, *options, page.as_uri()]
    return run(command).stdout.decode()


needs_browser = pytest.mark.skipif(
    not (CHROMIUM and MERMAID), reason="no chromium on PATH, or MERMAID_JS names no mermaid.min.js"
)


@needs_browser
@pytest.mark.timeout(240)
@pytest.mark.parametrize("table", TABLES)
def test_a_browser_draws_every_state_and_row_of_the_mermaid_text(tmp_path, table):
    dom = browsed(tmp_path, draw(table, Format.MERMAID))

    assert "refused:" not in dom
    drawn = set(re.findall(r'data-id="([^"]+)"|id="[^"]*state-(\w+)-\d+"', dom))
    shown = {one or other for one, other in drawn}
    assert {node_name(state) for state in table.states} <= shown
    assert dom.count("transition") >= len(table.rows)


@needs_browser
@pytest.mark.timeout(240)
def test_a_browser_refuses_what_is_no_mermaid_text(tmp_path):
    assert "refused:" in browsed(tmp_path, "stateDiagram-v2\n  a --> --> b\n")
