"""The files in `deploy` install all of the product, and give up what cannot start."""

import configparser
import json
import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from actors.cli.group import ExitCode
from actors.kit.counters import Outcome

ROOT = Path(__file__).parents[1]
UNITS = ["protofly-node.service", "protofly-runtime@.service"]


def tracked():
    """Return the paths of all files that an image could hold."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.split("\n")


def installed():
    """Return the paths of the files that a wheel holds."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packages = {pattern.rstrip("*") for pattern in tool["packages"]["find"]["include"]}
    for path in tracked():
        package, _, inside = path.partition("/")
        patterns = [*tool["package-data"].get(package, ()), *tool["package-data"]["*"]]
        is_data = any(fnmatch(inside, pattern.replace("**/", "*")) for pattern in patterns)
        if package in packages and (is_data or path.endswith(".py")):
            yield path


def copied():
    """Return the files and folders that are copied for the build."""
    for line in (ROOT / "deploy" / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            *sources, target = line.split()[1:]
            names = [target] if len(sources) == 1 else [f"{target}{Path(s).name}" for s in sources]
            for source, name in zip(sources, names, strict=True):
                if target != "./" and not target.startswith("requirements"):
                    assert name == source, line
                yield source


def test_the_image_has_all_of_the_product_the_dashboard_too():
    sources = list(copied())
    files = list(installed())
    assert "web/dashboard/main.js" in files
    missing = [
        file
        for file in files
        if not any(file == source or file.startswith(f"{source}/") for source in sources)
    ]
    assert missing == []


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_ends_with_a_wrong_configuration(name):
    """Only the status of the main process counts: one of a check before it would start it anew."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(ROOT / "deploy" / name)
    service, limits = unit["Service"], unit["Unit"]
    assert "ExecStartPre" not in service
    status = {int(word) for word in service["RestartPreventExitStatus"].split()}
    assert {int(ExitCode.CONFIGURATION), 2} <= status
    burst, pause = int(limits["StartLimitBurst"]), int(service["RestartSec"])
    assert 0 < burst * pause < int(limits["StartLimitIntervalSec"])


RULES = ROOT / "deploy" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"


def metrics():
    """Return the names of the series that a process exports, and the labels of each."""
    rows = re.findall(
        r"^\| `(protofly_\w+)` \| (\w+) \| ([\w, ]*) \|",
        (ROOT / "docs" / "operating.md").read_text(),
        re.MULTILINE,
    )
    for name, kind, labels in rows:
        known = {"instance", "job", *labels.split(", ")}
        for end in ("_bucket", "_count", "_sum") if kind == "histogram" else ("",):
            yield f"{name}{end}", known | {"le"} if end == "_bucket" else known


EXPORTED = dict(metrics())
QUERIES = [
    *re.findall(r"^ +expr: (?:>-\n)?(.*(?:\n {10,}.*)*)", RULES.read_text(), re.MULTILINE),
    *(
        target["expr"]
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel["targets"]
    ),
]


def test_alerts_and_dashboard_ask_for_what_processes_export():
    assert len(QUERIES) > 30
    for query in QUERIES:
        names = re.findall(r"\bprotofly_\w+", query)
        assert set(names) <= EXPORTED.keys(), query
        labels = {
            *re.findall(r"(\w+)[!=]=?~?\"", query),
            *(each for by in re.findall(r"by \(([^)]*)\)", query) for each in by.split(", ")),
        }
        for name in names:
            assert labels <= EXPORTED[name], (query, name)
        outcomes = re.findall(r'outcome!?="(\w+)"', query)
        assert set(outcomes) <= {each.value for each in Outcome}, query


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool on PATH")
@pytest.mark.parametrize(
    "words", [("check", "rules", RULES), ("test", "rules", ROOT / "tests/fixtures/alerts-test.yml")]
)
def test_prometheus_takes_the_alerts_and_each_fires_for_its_fault(words):
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert done.returncode == 0, done.stdout + done.stderr
