"""The page by itself: texts of traces stay texts, colours can be read, plots are of the page."""

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import Row as SparkRow

from fsm.drawing.draw import svg
from fsm.judge.replay import TimelineStep
from fsm.judge.trace_files import BadLine, Missing
from fsm.judge.trace_line import Claim, Verdict
from fsm.machine_list import MACHINES
from spark.findings import Broken, Dwell, Findings, MachineUse, NodeFindings, Row, Step
from spark.report.figures import BINS, QUANTILES, Figures, Hop, Latency, Traffic, Way
from spark.report.page import Extent, page
from spark.report.pictures import dwell_plot, latency_plot, rate_plot

NASTY = (
    "<script>alert(1)</script>&\"'<!--]]>\N{RIGHT-TO-LEFT OVERRIDE}\x1b[2J\N{LEFT-TO-RIGHT ISOLATE}"
)
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def event(text, ln):
    return SparkRow(
        run=text, node=text, ln=ln, wall_ns=ln, actor=f"{text}{ln}", k="msg", op=text, machine=text,
        key=text, old=text, new=text, cause=text, type=text, mid=text, ref=text, code=1, link=text,
    )  # fmt: skip


def findings_of(text):
    told = TimelineStep(1, 0.5, text, text, text)
    step = Step(machine=text, key=text, actor=text, why=text, record=told, before=[told])
    where = {"run": text, "node": text, "ln": 3, "about": text, "expected": text}
    node = NodeFindings(
        run=text, node=text, verdict=Verdict.VIOLATIONS, records=3, missing=0, doubled=0,
        quarantined=1, violations=2, flaws=frozenset(),
    )  # fmt: skip
    machine = MachineUse(
        machine=text, steps=1, entities=1, violations=1, used={},
        dwells=[], undeclared={Row(text, text, text): 1},
    )  # fmt: skip
    return Findings(
        verdict=Verdict.VIOLATIONS, events=3, entities=1, violations=2, quarantined=1,
        by_claim={Claim.DECLARED_STEP.value: 3, Claim.ENDS_AT_REST.value: 1}, nodes=[node],
        machines=[machine], gaps=[Missing(text, text, 1, text)],
        bad_lines=[BadLine(text, 1, text, text)],
        shown=[Broken(claim=Claim.DECLARED_STEP.value, step=step, **where),
               Broken(claim=Claim.DECLARED_STEP.value, step=step, **where),
               Broken(claim=Claim.ENDS_AT_REST.value, **where)],
    )  # fmt: skip


def figures_of(text, **more):
    return Figures(
        processes=[SparkRow(run=text, node=text, began=0.0, ended=1.0, records=3)],
        holes=[SparkRow(run=text, node=text, began=0.2, ended=0.3, reason=text)],
        components=[SparkRow(actor=text, op=text, records=3)],
        set_ups=[SparkRow(machine=text, key=text, node=text, seconds=0.1)],
        **more,
    )


def page_of(text, **more):
    extent = Extent(
        stories={(text, text, 3): [event(text, 2), event(text, 3)]},
        figures=figures_of(text, **more), inputs=[text], command=text, made=text,
        former=None,
    )  # fmt: skip
    return page(findings_of(text), extent, {}, {}, [(text, text, text)])


class Shape(HTMLParser):
    """The elements of a page with the names of their attributes, and its texts."""

    def __init__(self, markup):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        self.elements.append(("comment", data))


PLAIN = Shape(page_of("x"))
# Lone surrogates cannot be in a trace: its reader refuses them.
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("<>&\"'\u202e/="), min_size=1
)


@given(TEXTS)
@example(NASTY)
@example("</script>")
@example("</style></title><svg onload=x>")
@example("' onclick='x")
def test_no_text_of_a_trace_becomes_markup(text):
    drawn = page_of(text)
    assert not ACTIVE.search(drawn)
    assert Shape(drawn).elements == PLAIN.elements


def test_texts_in_drawings_stay_texts_too():
    hop = Hop(NASTY, Way.DIRECT, 0.1, [1] * BINS)
    latency = Latency(3, [0.1] * len(QUANTILES))
    traffic = Traffic(1, 1, 1)
    drawn = page_of(NASTY, hops=[hop], latencies={Way.NODE: latency}, traffic=traffic)
    plain = page_of("x", hops=[hop], latencies={Way.NODE: latency}, traffic=traffic)
    assert Shape(drawn).elements == Shape(plain).elements
    assert NASTY.split("<")[1] in "".join(Shape(drawn).texts)
    strange = svg(MACHINES["session"], None, ("open", NASTY, NASTY))
    assert "<script" not in strange


def test_the_page_refers_to_nothing_outside():
    hop = Hop("a", Way.DIRECT, 0.1, [1] * BINS)
    drawn = page_of("x", hops=[hop], latencies={Way.NODE: Latency(3, [0.1] * len(QUANTILES))},
                    traffic=Traffic(1, 1, 1))  # fmt: skip
    assert not re.search(r"<(?:script|link|img|iframe|object|embed|base|form)\b", drawn)
    targets = re.findall(
        r"""(?:src|href|action|poster)=["']([^"']*)|url\(([^)]*)\)|@import""", drawn
    )
    assert targets
    assert all((target or other).startswith("#") for target, other in targets)
    assert set(re.findall(r"\bhttps?://[^\"' <]*", drawn)) <= {
        "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink",
    }  # fmt: skip


def test_labels_and_ids_are_unique_and_there():
    hop = Hop("a", Way.DIRECT, 0.1, [1] * BINS)
    drawn = page_of("x", hops=[hop])
    ids = re.findall(r'\bid="([^"]*)"', drawn)
    assert len(ids) == len(set(ids))
    labels = re.findall(r'<(?:section|article) aria-labelledby="([^"]*)"', drawn)
    assert len(labels) == len(set(labels)) > 10
    for names in re.findall(r'aria-labelledby="([^"]*)"', drawn):
        assert set(names.split()) <= set(ids)
    for used in re.findall(r'(?:href="#|url\(#)([^")]*)', drawn):
        assert used in ids


def test_secrets_of_the_command_are_not_shown(monkeypatch):
    from spark.__main__ import _command

    told = ["python", "validate", "s3://me:pw@h/a b", "--conf", "spark.x.secret.key=pw", "--json"]
    monkeypatch.setattr("sys.argv", told)
    assert _command() == (
        "python -m spark validate 's3://...@h/a b' --conf spark.x.secret.key=... --json"
    )


def test_states_that_are_not_declared_are_listed():
    drawn = page_of("warp")
    assert "States that the machine does not have" in drawn
    shown = " ".join(Shape(drawn).texts)
    assert re.search(
        r"States that the machine does not have\s+state\s+entered or left\s+warp", shown
    )


# ---- plots


def plots():
    hops = [Hop(str(at), Way.NODE, 0.1, [at] * BINS) for at in range(1, 9)]
    dwell = MachineUse(
        machine="session", steps=1, entities=1, violations=0, used={}, undeclared={},
        dwells=[Dwell("open", 3, 0.1, 0.2, 0.3), Dwell("detached", 1, 0.0, 0.0, 0.0)],
    )  # fmt: skip
    latency = Latency(3, [at / 1000 for at in range(len(QUANTILES))])
    return [rate_plot(hops), latency_plot({Way.NODE: latency}), dwell_plot([dwell])]


def test_plots_are_the_same_each_time_and_take_the_colours_of_the_page():
    drawn = plots()
    assert drawn == plots()
    for plot in drawn:
        assert "<text" in plot
        assert not re.search("#[0-9a-f]{6}|<metadata|<style|font-family", plot)
        assert re.search(r"var\(--series-[1-6]\)", plot)
        assert "currentColor" in plot
        form = r'<svg class="plot (\w+)" role="img" aria-labelledby="\S+ \S+"'
        assert re.findall(form, plot) == ["narrow", "wide"]
        assert plot.count("<desc") == plot.count("<title") == 2


# ---- colours


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """By WCAG 2.2, "contrast ratio"."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def colours():
    style = (files("spark.report") / "report.css").read_text()
    drawing = re.search("<style>(.*?)</style>", svg(MACHINES["session"]), re.DOTALL)[1]
    themes = [{}, {}]
    for sheet in (style, drawing):
        first, rest = sheet.split("@media (prefers-color-scheme: dark)", 1)
        dark = rest[: re.search(r"}\s*}", rest).end()]
        light = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", first))
        themes[0] |= light
        themes[1] |= light | dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", dark))
    return themes


TEXT = ["--ink", "--muted", "--good", "--bad", "--open", "--fsm-ink", "--fsm-muted",
        "--fsm-extension", "--fsm-never", "--fsm-illegal"]  # fmt: skip
LINES = [*(f"--series-{number}" for number in range(1, 7)), "--fsm-line"]


@pytest.mark.parametrize("number", [0, 1], ids=["light", "dark"])
def test_texts_and_lines_have_the_contrast_of_wcag_aa(number):
    theme, poor = colours()[number], {}
    for names, least in ((TEXT, 4.5), (LINES, 3.0)):
        for name in names:
            for ground in ("--card", "--page"):
                if (ratio := contrast(theme[name], theme[ground])) < least:
                    poor[name, ground] = round(ratio, 2)
    if contrast(theme["--fsm-ink"], theme["--fsm-box"]) < 4.5:
        poor["--fsm-ink", "--fsm-box"] = "box"
    assert not poor


def test_an_illegal_step_is_red_in_a_browser_as_well():
    """The style of a drawing wins over its attributes, so it must know the step."""
    drawn = svg(MACHINES["session"], None, ("open", "warp", "hyperspace"))
    assert len(re.findall(r'class="edge illegal"', drawn)) == 1
    assert len(re.findall(r'class="node state illegal"', drawn)) == 1
    rules = re.findall(
        r"^\.fsm ([^{\n]*) { (?:fill|stroke|--fsm-edge): ([^;]*);", drawn, re.MULTILINE
    )
    red = [name for name, value in rules if value == "var(--fsm-illegal)"]
    assert red == [".edge.illegal", ".state.illegal path", ".illegal text"]
