"""`headgate doctor`: what this machine lacks to run Headgate, and the line that gets it.

Each check answers with one `Finding` and never raises: the doctor is called when something is broken already. No Spark
session is started, so the answer takes a moment and not half a minute; what Spark needs is read from its package
folder and from `java -version`.

Spark is an extra. Where PySpark is not installed the machine is fine for matching in the process, so everything that
only Spark needs is then optional; once PySpark is installed, it is required.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

GIB = 1 << 30
JAVA_FIX = "Java 17 or newer, in JAVA_HOME or else on PATH; Debian, Ubuntu: apt-get install openjdk-17-jre-headless"
SPARK_FIX = "pip install 'headgate[spark]'"
PATIENCE_S = 20.0
_ANY = (1_000_000,)
"""Above every version."""
WORKER_QUESTION = """
import sys
try:
    import pyarrow
    state = "with"
except ImportError:
    state = "without"
print("%d.%d %s pyarrow" % (sys.version_info[0], sys.version_info[1], state))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about the machine; `fix` is what to do if it is not `ok`. `optional` ones leave the exit code alone."""

    name: str
    ok: bool
    found: str
    fix: str
    optional: bool = False


def installed(name: str) -> str | None:
    """The version of an installed distribution."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: "18.1.0rc1" is (18, 1, 0)."""
    leading = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in leading.group().split(".")) if leading else ()


def without_spark() -> bool:
    return installed("pyspark") is None


def spark_home() -> Path | None:
    """Where Spark's jars are: SPARK_HOME as Spark itself reads it, else the package; found without importing it."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def ask(command: list[str]) -> str | None:
    """What a program prints, on either stream; None if it cannot be run."""
    try:
        done = subprocess.run(  # noqa: S603 - asks the very program that Spark is going to start
            command, capture_output=True, text=True, check=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return (done.stdout + done.stderr).strip()


def java_major(banner: str) -> int | None:
    """The major version in the output of `java -version`: "17.0.15" is 17, "1.8.0_392" is 8, "22-ea" is 22."""
    stated = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(stated.group(1)) if stated else None


def check_python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", (3, 11) <= sys.version_info[:2] <= (3, 13), found, "use Python 3.11, 3.12 or 3.13")


def check_java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else "PATH"
    banner = ask([program, "-version"]) if program else None
    major = java_major(banner) if banner else None
    found = f"none ({where})" if major is None else f"{major} ({where})"
    return Finding("Java", major is not None and major >= 17, found, JAVA_FIX, without_spark())


def check_version(
    name: str, low: tuple[int, ...], below: tuple[int, ...], fix: str, for_spark: bool = True
) -> Callable[[], Finding]:
    """Whether a distribution is there in a version from `low` on."""

    def check() -> Finding:
        found = installed(name.lower())
        ok = found is not None and low <= numbers(found) < below
        return Finding(name, ok, found or "not installed", fix, for_spark and without_spark())

    return check


def check_worker_python() -> Finding:
    """Spark starts `python3` from PATH if nothing names an interpreter: often another version, or one without pyarrow.

    Without PYSPARK_PYTHON that is advice only: a session that Headgate opens names the interpreter itself.
    """
    named = os.environ.get("PYSPARK_PYTHON")
    program = named or "python3"
    stated = ask([program, "-c", WORKER_QUESTION])
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    origin = "PYSPARK_PYTHON" if named else "python3 on PATH"
    found = f"{stated or 'cannot be run'} ({origin}), driver {here}"
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    return Finding(
        "worker Python", stated == f"{here} with pyarrow", found, fix, optional=named is None or without_spark()
    )


def check_connect() -> Finding:
    names = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")
    missing = [name for name in names if installed(name) is None]
    found = "missing: " + ", ".join(missing) if missing else f"grpcio {installed('grpcio')}"
    return Finding("Spark Connect", not missing, found, SPARK_FIX, optional=True)


def check_rocksdb() -> Finding:
    home = spark_home()
    jars = sorted(home.glob("jars/rocksdbjni-*.jar")) if home else []
    found = jars[0].name if jars else f"no rocksdbjni jar in {home / 'jars'}" if home else "no Spark"
    fix = f"unset SPARK_HOME or point it to a Spark 4 with its jars; or {SPARK_FIX}"
    return Finding("RocksDB state store", bool(jars), found, fix, without_spark())


def check_import(name: str, module: str, distribution: str) -> Finding:
    """Whether a compiled module loads; being installed is not enough, since a wheel may have been built without it."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        return Finding(name, False, str(error), f"pip install --force-reinstall --only-binary :all: {distribution}")
    return Finding(name, True, installed(distribution) or "built in", "")


def writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or the folder itself if it does not exist yet."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def check_kernel_cache() -> Finding:
    """Without a cache every process compiles the kernels again. The places are those of numba, in its order."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "numba"
    places = [Path(named)] if named else [Path(__file__).parents[1], cache]
    chosen = next((place for place in places if writable(place)), None)
    found = str(chosen) if chosen else "not writable: " + ", ".join(map(str, places))
    return Finding("kernel cache", chosen is not None, found, "set NUMBA_CACHE_DIR to a writable folder", optional=True)


def memory_limit() -> int | None:
    """The bytes this process may use: the machine's, or less in a container."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text("ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def check_memory() -> Finding:
    limit = memory_limit()
    found = "unknown" if limit is None else f"{limit / GIB:.1f} GiB"
    return Finding("memory", limit is not None and limit >= 2 * GIB, found, "give it 2 GiB or more", optional=True)


def check_disk() -> Finding:
    """The state store of a running query lives in Spark's scratch folder before it reaches the checkpoint."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).partition(",")[0]
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("disk for state", False, str(error), "set SPARK_LOCAL_DIRS to an existing folder", optional=True)
    fix = "free 1 GiB there or set SPARK_LOCAL_DIRS to a larger disk"
    return Finding("disk for state", free >= GIB, f"{free / GIB:.1f} GiB free in {folder}", fix, optional=True)


CHECKS: tuple[Callable[[], Finding], ...] = (
    check_python,
    check_java,
    check_version("PySpark", (4,), (5,), SPARK_FIX),
    check_version("pandas", (2, 2), (3,), "pip install 'pandas>=2.2,<3'"),
    check_version("pyarrow", (18,), _ANY, "pip install 'pyarrow>=18'", for_spark=False),
    check_worker_python,
    # The workers of a stateful step speak to the state store in protobuf messages, with or without Connect.
    check_version("protobuf", (), _ANY, SPARK_FIX),
    check_connect,
    check_rocksdb,
    partial(check_import, "RE2", "re2", "google-re2"),
    partial(check_import, "CUDD", "dd.cudd", "dd"),
    check_kernel_cache,
    check_memory,
    check_disk,
)


def diagnose() -> list[Finding]:
    """Every check, in the order in which one would repair things."""
    return [check() for check in CHECKS]


def check_store(url: str) -> list[Finding]:
    """Whether a store opens, and which of its definitions are set aside here."""
    from headgate.errors import HeadgateError
    from headgate.store import Store

    if "://" not in url and not Path(url).exists():
        return [Finding("store", False, f"there is no file {url}", "give the store as `headgate serve` has it")]
    try:
        store = Store(url)
        found = store.replica()
        store.close()
    except HeadgateError as problem:
        return [Finding("store", False, problem.message, problem.hint)]
    said = (
        f"version {found.version}, {len(found.book):,} subscriptions, {len(found.quarantined):,} definitions set aside"
    )
    fix = "see which, below: install what they need, or replace or remove them"
    return [
        Finding("store", not found.quarantined, said, fix),
        *(Finding(f"{q.kind} {q.name}", False, q.reason, f"set aside: {q.reason}") for q in found.quarantined.values()),
    ]


def show(findings: list[Finding], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("", "what", "found"):
        table.add_column(title, overflow="fold")
    for finding in findings:
        sign = "[green]ok[/]" if finding.ok else "[yellow]optional[/]" if finding.optional else "[red]missing[/]"
        table.add_row(sign, finding.name, finding.found)
    console.print(table)
    for finding in findings:
        if not finding.ok:
            # Plain and unwrapped, because these lines are copied into a shell.
            console.print(f"{finding.name}: {finding.fix}", markup=False, highlight=False, soft_wrap=True)


@click.command()
@click.option("--store", default=None, help="Look into this store too: a SQLite file, or postgresql://...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per finding, one line each.")
@click.pass_context
def doctor(context: click.Context, store: str | None, as_json: bool) -> None:
    """Say what this machine lacks, and how to get it. Exit code 2 if something required is missing."""
    findings = diagnose() + (check_store(store) if store else [])
    if as_json:
        for finding in findings:
            click.echo(json.dumps(asdict(finding)))
    else:
        show(findings, Console())
    context.exit(0 if all(finding.ok or finding.optional for finding in findings) else 2)
