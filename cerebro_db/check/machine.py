"""What a server is run in, as far as its trainers make something of it, or could end it."""

from __future__ import annotations

import shutil
import subprocess

import sqlalchemy as sa

from cerebro_db.check import segments
from cerebro_db.check.finding import Finding
from cerebro_db.check.segments import row


def out_of_memory(connection: sa.Connection) -> Finding | None:
    """Whether the kernel, when it ends a trainer for its memory, is told to end the whole server
    with it.
    """
    is_superuser, is_local = row(
        connection, "SELECT current_setting('is_superuser')::bool, inet_server_addr() IS NULL"
    )
    if not is_superuser:
        return None  # others may not read the server's files
    grouped = [host for host, at in _hosts(connection).items() if _grouped(connection, at)]
    if grouped:
        return Finding(
            state="WARN",
            told="one process out of memory ends all of its control group, the server included"
            + (f" (on {', '.join(grouped)})" if any(grouped) else ""),
            remedy="Turn memory.oom.group off for the server (Kubernetes: singleProcessOOMKill),\n"
            "and set trainer_memory_mb in cerebro.setting so that it does not come to that.",
        )
    unit = _group(connection).rpartition("/")[2]
    if is_local and unit.endswith(".service") and shutil.which("systemctl"):
        command = ["systemctl", "show", "--property=OOMPolicy", "--value", unit]
        policy = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        if policy in ("stop", "kill"):
            return Finding(
                state="WARN",
                told=f"systemd ends the whole service {unit} when one process of it runs out of "
                "memory",
                remedy=f"`systemctl edit {unit}`, add the lines [Service] and OOMPolicy=continue.",
            )
    return Finding(told="nothing found that would end the server along with a trainer")


def _hosts(connection: sa.Connection) -> dict[str, str]:
    """What sends a statement to each host where trainers run, by the host's name; on PostgreSQL
    there is one host.
    """
    if not segments.greenplum(connection):
        return {"": ""}
    one_of_each = {segment.host: segment for segment in segments.listed(connection)}
    keys = {host: segments.key_of(connection, segment) for host, segment in one_of_each.items()}
    return {
        host: f" FROM cerebro.segment_key k WHERE k.key = {key:d}" for host, key in keys.items()
    }


def _group(connection: sa.Connection, at: str = "") -> str:
    return _file(connection, "/proc/self/cgroup", at).strip().rpartition("::")[2]


def _grouped(connection: sa.Connection, at: str) -> bool:
    group = _group(connection, at)
    return _file(connection, f"/sys/fs/cgroup{group}/memory.oom.group", at).strip() == "1"


def _file(connection: sa.Connection, path: str, at: str = "") -> str:
    query = "SELECT coalesce(pg_read_file(%s, 0, 4096, true), '')" + at
    return str(connection.exec_driver_sql(query, (path,)).scalar_one())


def first_process(connection: sa.Connection) -> Finding | None:
    """Whether the server is process 1, as in many containers: it inherits orphans, and takes one
    that a signal ended for a crashed backend of its own, after which it ends all sessions and
    starts anew."""
    (is_superuser,) = row(connection, "SELECT current_setting('is_superuser')::bool")
    if not is_superuser:
        return None  # others may not read the server's files
    if _file(connection, "postmaster.pid").splitlines()[:1] != ["1"]:
        return Finding(told="the server is not process 1, so it inherits no orphans")
    return Finding(
        state="WARN",
        told="the server is process 1: a trainer that is killed after its session has ended makes "
        "it start anew",
        remedy="Give the container an init: docker run --init, init: true in a compose file, or "
        "tini as entrypoint\n"
        "(Kubernetes: shareProcessNamespace).",
    )


def compiled_code(connection: sa.Connection) -> Finding | None:
    """Whether trainers find what earlier ones compiled; on each host, as far as one host's folder
    is not another's.
    """
    (is_superuser,) = row(connection, "SELECT current_setting('is_superuser')::bool")
    if not is_superuser:
        return None
    found = {host: _report(connection, at) for host, at in _hosts(connection).items()}
    problems = [f"{host}: {text}" if host else text for host, (_, text) in found.items() if text]
    if problems:
        return Finding(
            state="WARN",
            told="trainers keep none: there is no folder for it that is theirs alone",
            remedy="\n".join(problems)
            + "\nMake a folder with mode 0700 as the system user of the server, on every host,\n"
            "and name it: INSERT INTO cerebro.setting VALUES ('compilation_cache', '/path');\n"
            "or set compilation_cache to '', and each trainer compiles for itself.",
        )
    paths = {path for path, _ in found.values() if path}
    return Finding(
        told=f"kept in {', '.join(sorted(paths))}"
        if paths
        else "none is kept: compilation_cache is empty"
    )


def _report(connection: sa.Connection, at: str) -> tuple[str | None, str | None]:
    """The folder of compiled code on a host, or what is wrong with each that there could be."""
    report = connection.exec_driver_sql("SELECT cerebro.trainer_report('none')" + at).scalar_one()
    return report["compilation_cache"], report["compilation_cache_problem"]
