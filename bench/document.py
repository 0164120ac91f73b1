"""Write measurements into documents, between two markers."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench import tables
from bench.turns import WorkloadResults

DOCUMENT = Path(__file__).parents[1] / "docs" / "internals" / "benchmarks.md"


def replace_section(document: str, name: str, content: str) -> str:
    """Return the document with new content between the markers of a name.

    >>> replace_section("a\\n<!-- bench F: begin -->\\nold\\n<!-- bench F: end -->\\nb", "F", "new")
    'a\\n<!-- bench F: begin -->\\nnew\\n<!-- bench F: end -->\\nb'
    """
    begin = f"<!-- bench {name}: begin -->"
    end = f"<!-- bench {name}: end -->"
    if begin not in document or end not in document:
        raise ValueError(f"the document has no markers {begin!r} and {end!r}")
    head, _, tail = document.partition(begin)
    return f"{head}{begin}\n{content}\n{end}{tail.partition(end)[2]}"


def merge_rows(document: str, name: str, rows: Sequence[list[str]]) -> list[list[str]]:
    """Return the rows of the table between the markers of a name, merged with new rows.

    A new row replaces the one with the same first cell.

    >>> old = ("<!-- bench F: begin -->\\n| what | seen |\\n|---|---:|\\n"
    ...        "| a | 1 |\\n| b | 2 |\\n<!-- bench F: end -->")
    >>> merge_rows(old, "F", [["b", "3"], ["c", "4"]])
    [['a', '1'], ['b', '3'], ['c', '4']]
    """
    content = document.partition(f"<!-- bench {name}: begin -->")[2].partition(
        f"<!-- bench {name}: end -->"
    )[0]
    lines = [line for line in content.splitlines() if line.startswith("| ")][1:]
    cells = [
        [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        for line in lines
    ]
    return list({row[0]: row for row in [*cells, *rows]}.values())


def write_section(name: str, content: str, document: Path = DOCUMENT) -> None:
    """Write content between the markers of a name."""
    document.write_text(replace_section(document.read_text(), name, content))


def describe_workload(results: WorkloadResults, repeats: int) -> str:
    """Return the report of a workload."""
    job = results.job
    scale = results.scale
    summary = (
        f"{len(job.configs)} configurations, {job.epochs} epochs, "
        f"{results.workload.count_rows(scale):,} rows to train on, "
        f"{results.workload.count_validation_rows(scale):,} to validate on, "
        f"{job.segments} segments; {repeats} repetitions in turns."
    )
    parts = [
        summary,
        tables.format_contenders(results),
        "Where our time went:",
        tables.format_breakdown(results),
    ]
    parts.append(f"Visits by the form of their loop: {tables.format_forms(results)}.")
    return "\n\n".join([*parts, f"Settings of the peers: {tables.format_settings(results)}."])


def describe_machine(postgresql: str) -> str:
    """Return the machine and the versions of the libraries."""
    names = ("tensorflow_cpu", "tensorflow", "jax", "torch", "keras", "numpy", "ray", "safetensors")
    versions = [
        f"{name.replace('_', '-')} {installed}"
        for name in names
        if (installed := _find_version(name))
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{len(os.sched_getaffinity(0))} cores ({_find_processor()}), {memory:.0f} GB of memory, "
        f"Linux {platform.release()}; PostgreSQL {postgresql}, Python {platform.python_version()}, "
        f"{', '.join(versions)}; cerebro_db {_find_version('cerebro_db')}."
    )


def _find_processor() -> str:
    installed = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return installed[1] if installed else platform.machine()


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
