"""gpu_configuration: a row for each GPU of each host, from the framework or from the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from interpreters import interpreter
from roles import refused
from workbench import Workbench

LISTED = ("GPU 0: NVIDIA H200 (UUID: GPU-1)", "GPU 1: NVIDIA H200 (UUID: GPU-2)")


@contextmanager
def driver(superuser: Workbench, folder: Path, script: str) -> Iterator[None]:
    """Trainers find this in the place of nvidia-smi."""
    smi = folder / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\n{script}\n")
    smi.chmod(0o755)
    with interpreter(superuser, folder, f'#!/bin/sh\nPATH="{folder}:$PATH" exec {{python}} "$@"\n'):
        yield


WITH_TORCH = pytest.mark.skipif(
    find_spec("torch") is None, reason="without torch, which is not installed"
)


@pytest.mark.parametrize(
    "source", ["tensorflow", "jax", pytest.param("torch", marks=WITH_TORCH), "nvidia", None]
)
def test_without_gpus_the_table_is_empty(bench: Workbench, source: str | None) -> None:
    name = f"none_of_{source}"
    bench.messages()
    bench.rows("SELECT gpu_configuration(%s, %s)", name, source)
    assert bench.rows(f"SELECT * FROM {name}") == []
    assert any("No GPUs configured on hosts." in said for said in bench.messages())
    columns = (
        "SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = %s::regclass "
        "AND attnum > 0"
    )
    assert bench.rows(columns, name) == [("hostname", "text"), ("gpu_descr", "text")]


def test_what_the_driver_lists(
    bench: Workbench, shared_superuser: Workbench, folder: Path, platform: str
) -> None:
    """Once for each host, whose name on Greenplum is that of its segments."""
    lines = "\n".join((*LISTED, "  MIG 1g.18gb Device 0: (UUID: MIG-1)"))
    with driver(shared_superuser, folder, f"[ $1 = -L ] && echo '{lines}'"):
        bench.rows("SELECT gpu_configuration('listed', 'NVIDIA')")
    hosts = [("localhost",)]
    if platform == "greenplum":
        hosts = bench.rows(
            "SELECT DISTINCT hostname FROM gp_segment_configuration WHERE content >= 0"
        )
    assert bench.rows("SELECT * FROM listed ORDER BY 2") == [
        (host, line) for line in LISTED for (host,) in hosts
    ]


def test_a_driver_that_fails_is_named(
    bench: Workbench, shared_superuser: Workbench, folder: Path
) -> None:
    with driver(shared_superuser, folder, "echo 'NVIDIA-SMI has failed' >&2; exit 9"):
        error = refused(bench, "SELECT gpu_configuration('failed', 'nvidia')", code="55000")
    assert "nvidia-smi ended with exit status 9: NVIDIA-SMI has failed" in str(error)
    assert not bench.exists("failed")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("NULL", "22004", "NULL/empty output table name!"),
        ("'points'", "42P07", "Output table 'points' already exists."),
        (
            "'o', 'intel'",
            "22023",
            "source is 'intel'; expected one of 'tensorflow', 'jax', 'torch', 'nvidia'.",
        ),
    ],
)
def test_wrong_calls(bench: Workbench, arguments: str, code: str, words: str) -> None:
    assert words in str(refused(bench, f"SELECT gpu_configuration({arguments})", code=code))
    assert not bench.exists("o")
