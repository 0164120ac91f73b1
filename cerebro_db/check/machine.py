"""Checks of the environment of a server, as far as it concerns its trainers."""

from __future__ import annotations

import shutil
import subprocess

import sqlalchemy as sa

from cerebro_db.check import segments
from cerebro_db.check.finding import Finding
from cerebro_db.check.segments import fetch_row


def check_out_of_memory(connection: sa.Connection) -> Finding | None:
    """Check that the kernel kills only the trainer, not the server, if memory runs out."""
    is_superuser, is_local = fetch_row(
        connection, "SELECT current_setting('is_superuser')::bool, inet_server_addr() IS NULL"
    )
    if not is_superuser:
        return None  # only a superuser may read the server's files
    hosts = [
        host
        for host, from_clause in _list_hosts(connection).items()
        if _kills_group(connection, from_clause)
    ]
    if hosts:
        summary = "one process out of memory ends all of its control group, the server included"
        if any(hosts):
            summary += f" (on {', '.join(hosts)})"
        return Finding(
            state="WARN",
            summary=summary,
            remedy="Turn memory.oom.group off for the server (Kubernetes: singleProcessOOMKill),\n"
            "and set trainer_memory_mb in cerebro.setting so that it does not come to that.",
        )
    unit = _read_control_group(connection).rpartition("/")[2]
    if is_local and unit.endswith(".service") and shutil.which("systemctl"):
        command = ["systemctl", "show", "--property=OOMPolicy", "--value", unit]
        policy = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        if policy in ("stop", "kill"):
            return Finding(
                state="WARN",
                summary=f"systemd ends the whole service {unit} when one process of it runs out of "
                "memory",
                remedy=f"`systemctl edit {unit}`, add the lines [Service] and OOMPolicy=continue.",
            )
    return Finding(summary="nothing found that would end the server along with a trainer")


def _list_hosts(connection: sa.Connection) -> dict[str, str]:
    """Return the hosts of trainers, with the FROM clause that sends a statement to the host.

    On PostgreSQL, there is one host with an empty name and an empty clause.
    """
    if not segments.find_product(connection):
        return {"": ""}
    hosts = {segment.host: segment for segment in segments.list_segments(connection)}
    keys = {host: segments.find_key(connection, segment) for host, segment in hosts.items()}
    return {
        host: f" FROM cerebro.segment_key k WHERE k.key = {key:d}" for host, key in keys.items()
    }


def _read_control_group(connection: sa.Connection, from_clause: str = "") -> str:
    return _read_file(connection, "/proc/self/cgroup", from_clause).strip().rpartition("::")[2]


def _kills_group(connection: sa.Connection, from_clause: str) -> bool:
    """Return whether the kernel kills the whole control group of a process out of memory."""
    group = _read_control_group(connection, from_clause)
    path = f"/sys/fs/cgroup{group}/memory.oom.group"
    return _read_file(connection, path, from_clause).strip() == "1"


def _read_file(connection: sa.Connection, path: str, from_clause: str = "") -> str:
    query = "SELECT coalesce(pg_read_file(%s, 0, 4096, true), '')" + from_clause
    return str(connection.exec_driver_sql(query, (path,)).scalar_one())


def check_first_process(connection: sa.Connection) -> Finding | None:
    """Check that the server is not process 1, as it is in many containers.

    Process 1 inherits orphans. If a signal kills an orphan, the server takes it for a crashed
    backend of its own, ends all sessions and restarts.
    """
    (is_superuser,) = fetch_row(connection, "SELECT current_setting('is_superuser')::bool")
    if not is_superuser:
        return None  # only a superuser may read the server's files
    if _read_file(connection, "postmaster.pid").splitlines()[:1] != ["1"]:
        return Finding(summary="the server is not process 1, so it inherits no orphans")
    return Finding(
        state="WARN",
        summary="the server is process 1: a trainer that is killed after its session has ended "
        "makes it start anew",
        remedy="Give the container an init: docker run --init, init: true in a compose file, or "
        "tini as entrypoint\n"
        "(Kubernetes: shareProcessNamespace).",
    )


def check_compilation_cache(connection: sa.Connection) -> Finding | None:
    """Check that the trainers of each host have a compilation cache."""
    (is_superuser,) = fetch_row(connection, "SELECT current_setting('is_superuser')::bool")
    if not is_superuser:
        return None
    caches = set()
    problems = []
    for host, from_clause in _list_hosts(connection).items():
        cache, problem = _read_compilation_cache(connection, from_clause)
        if cache:
            caches.add(cache)
        if problem:
            problems.append(f"{host}: {problem}" if host else problem)
    if problems:
        return Finding(
            state="WARN",
            summary="trainers keep none: there is no folder for it that is theirs alone",
            remedy="\n".join(problems)
            + "\nMake a folder with mode 0700 as the system user of the server, on every host,\n"
            "and name it: SELECT cerebro.set('compilation_cache', '/path');\n"
            "or set compilation_cache to '', and each trainer compiles for itself.",
        )
    if not caches:
        return Finding(summary="none is kept: compilation_cache is empty")
    return Finding(summary=f"kept in {', '.join(sorted(caches))}")


def _read_compilation_cache(
    connection: sa.Connection, from_clause: str
) -> tuple[str | None, str | None]:
    """Return the folder of compiled code on a host, or the problem of all possible folders."""
    query = "SELECT cerebro.trainer_report('none')" + from_clause
    report = connection.exec_driver_sql(query).scalar_one()
    return report["compilation_cache"], report["compilation_cache_problem"]
