"""How a backend finds its own server, from the file that the postmaster writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg2.extensions import parse_dsn

from cerebro_plpy.database.sessions.worker_sessions import read_address


@pytest.mark.parametrize(
    ("folder", "host"),
    [
        ("/run/postgresql", "/run/postgresql"),
        ("/a folder/with 'quotes'", "/a folder/with 'quotes'"),
        ("", "localhost"),
    ],
)
def test_the_address_is_the_socket_s_or_localhost(tmp_path: Path, folder: str, host: str) -> None:
    pid_file = tmp_path / "postmaster.pid"
    pid_file.write_text(
        f"4711\n/data\n1795167572\n5433\n{folder}\n*\n  2146705         4\nready   \n"
    )
    assert parse_dsn(read_address(pid_file)) == {"host": host, "port": "5433"}
