"""A standalone cluster of two workers judges as one process does, also if an executor is killed.

Master and workers are processes of their own on this machine, with ports that the system chooses.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from zipfile import ZipFile

import attrs
import pyspark
import pytest

from fsm.judge.trace_files import folders_of, parts_in
from fsm.judge.verdict import combine, judge_folders
from spark.session import find_java, java_home
from specs.claims import CLAIMS
from specs.trace import trace_folder
from tests.support.trace.trace_files import generated, records, session, whole, write_trace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
PATIENCE = 100
"""Seconds until a line has to come: a busy machine takes many times as long."""

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = (
    "driver.host=127.0.0.1", "driver.bindAddress=127.0.0.1", "executor.memory=512m",
    f"executor.extraJavaOptions={QUICK}", f"driver.extraJavaOptions={QUICK}",
    "sql.codegen.wholeStage=false", "sql.shuffle.partitions=1",
)  # fmt: skip
"""For few records: to compile well would take longer than what it saves."""

LOGGED = """
rootLogger.level = info
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = info
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""
"""Settings of the log that a driver otherwise does not write."""


class Program:
    """A program that runs, and its lines on stderr."""

    def __init__(self, stack: ExitStack, arguments: list[object], environ: dict[str, str]) -> None:
        self._process = stack.enter_context(
            subprocess.Popen(  # noqa: S603 - our own command
                [*map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=os.environ | environ,
                start_new_session=True,
            )
        )
        stack.callback(self._kill)
        self._lines: Queue[str | None] = Queue()
        self._seen: list[str] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stderr or ():
            self._lines.put(line)
        self._lines.put(None)

    def _kill(self) -> None:
        """Kill it, and the executors of a worker."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._reader.join()

    def says(self, pattern: str) -> re.Match[str]:
        """Wait for a line on stderr."""
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self._seen.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError("".join(self._seen[-40:]))

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; return its status, and what it wrote on stdout and stderr."""
        out = self._process.stdout.read()
        status = self._process.wait()
        self._reader.join()
        rest = iter(self._lines.get_nowait, None)
        return status, out, "".join([*self._seen, *rest])


@attrs.frozen
class Standalone:
    """A cluster that runs.

    Attributes:
        url: Of its master.
        java: The JAVA_HOME of its processes.
        local: Directory for their files.
    """

    url: str
    java: Path
    local: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"JAVA_HOME": str(self.java), "SPARK_LOCAL_DIRS": str(self.local)}

    @property
    def settings(self) -> list[str]:
        return [part for setting in SETTINGS for part in ("--conf", f"spark.{setting}")]


@contextmanager
def standalone(local: Path) -> Iterator[Standalone]:
    with ExitStack() as stack:
        java = stack.enter_context(java_home(find_java(os.environ)))
        environ = {"JAVA_HOME": str(java), "SPARK_LOCAL_DIRS": str(local)}
        start = [SPARK / "bin" / "spark-class", "org.apache.spark.deploy"]

        def started(name: str, *options: object) -> Program:
            place = ("--host", "127.0.0.1", "--port", 0, "--webui-port", 0)
            return Program(stack, [start[0], f"{start[1]}.{name}", *place, *options], environ)

        master = started("master.Master")
        url = master.says(r"Starting Spark master at (spark://\S+)")[1]
        for _ in range(2):
            size = ("--cores", 1, "--memory", "1g", "--work-dir", local / "work")
            started("worker.Worker", *size, url)
        for _ in range(2):
            master.says("Registering worker")
        yield Standalone(url, java, local)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("local")) as running:
        yield running


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Processes that keep the claims, and some that break them."""
    place = tmp_path_factory.mktemp("traces")
    for number, lines in enumerate(generated(12, seed=5)):
        run = f"g{number}"
        write_trace(
            place / trace_folder(run, "ra"), [one | {"run": run, "node": "ra"} for one in lines]
        )
    for number in range(28):
        told = records(whole(session("open", "detached", "open", "closed")), f"r{number}", "rb")
        write_trace(place / trace_folder(f"r{number}", "rb"), told)
    return place


@pytest.fixture(scope="module")
def expected(traces):
    """What one process says of them: the verdict, and how often each claim is broken."""
    folders = judge_folders(folders_of(parts_in([traces])))
    judged = combine([one for folder in folders for one in folder.processes])
    by_claim = {claim.value: times for claim, times in judged.machines.by_claim.items()}
    by_claim |= {CLAIMS[claim].name: times for claim, times in judged.by_claim.items()}
    return judged.verdict.value, {name: times for name, times in by_claim.items() if times}


def said(out: str) -> tuple[str, dict[str, int]]:
    verdict = json.loads(out.splitlines()[-1])
    return verdict["verdict"], {name: times for name, times in verdict["by_claim"].items() if times}


def executor(number: str, application: str) -> int:
    """The process of an executor."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        words = place.read_bytes().decode(errors="replace").split("\0")
        if f"--executor-id {number} " in f"{' '.join(words)} " and application in words:
            return int(place.parent.name)
    raise AssertionError(f"executor {number} does not run")


@pytest.mark.long
def test_an_executor_that_is_killed_in_mid_run_costs_time_only(cluster, traces, expected, tmp_path):
    command = [sys.executable, "-m", "spark", "validate", traces, "--json"]
    (tmp_path / "log4j2.properties").write_text(LOGGED)
    option = f"{QUICK} -Dlog4j2.configurationFile={(tmp_path / 'log4j2.properties').as_uri()}"
    logged = ["--conf", f"spark.driver.extraJavaOptions={option}"]
    with ExitStack() as stack:
        options = ["--master", cluster.url, *cluster.settings, *logged]
        run = Program(stack, [*command, *options], cluster.environ)
        application = run.says(r"Connected to Spark cluster with app ID (\S+)")[1]
        killed = run.says(r"Starting task 0.0 in stage 0.0 .*executor (\d+),")[1]
        os.kill(executor(killed, application), signal.SIGKILL)
        run.says(rf"Lost executor {killed}\b")
        run.says(r"Starting task 0.1 in stage 0.0")
        status, out, _ = run.end()
    assert (status, said(out)) == (1, expected)


@pytest.mark.soak
def test_spark_submit_ships_the_code_and_reads_by_any_file_system_of_hadoop(
    cluster, traces, expected, tmp_path
):
    """`viewfs:` stands for every scheme but `file:`: Spark reads the files, not the workers."""
    code = tmp_path / "protofly.zip"
    with ZipFile(code, "w") as packed:
        for package in ("fsm", "spark", "specs"):
            for file in sorted((ROOT / package).rglob("*.*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    packed.write(file, file.relative_to(ROOT))
    mount = f"spark.hadoop.fs.viewfs.mounttable.shared.link./traces={traces.as_uri()}"
    options = ["--master", cluster.url, "--conf", mount, *cluster.settings, "--py-files", code]
    program = [ROOT / "spark" / "__main__.py", "validate", "viewfs://shared/traces", "--json"]
    with ExitStack() as stack:
        command = [SPARK / "bin" / "spark-submit", *options, *program]
        environ = cluster.environ | {"PYSPARK_PYTHON": sys.executable}
        status, out, errors = Program(stack, command, environ).end()
    assert (status, said(out)) == (1, expected), errors[-2000:]
