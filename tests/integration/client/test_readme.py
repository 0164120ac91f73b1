"""The README's way to a server of one's own, typed on a machine that has nothing but Debian."""

from __future__ import annotations

import io
import re
import tarfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import containers
import pytest
from containers import ran
from testcontainers.core.container import DockerContainer

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
CLONE = "/srv/cerebro_db"
HERE = "/etc/postgresql/15/main"
pytestmark = [*containers.needed, pytest.mark.long]


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)^## ", README, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


INSTALL = section("Install on a server of your own")
SHELL, SQL, HBA, IDENT, _ = (
    textwrap.dedent(text) for text in re.findall(r"(?:^    .*\n)+", INSTALL, re.MULTILINE)
)


def cloned() -> bytes:
    """An archive of the clone, as far as an image gets it."""
    file = io.BytesIO()
    sent = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in sent:
            archive.add(
                ROOT / name,
                name,
                filter=lambda found: None if "__pycache__" in found.name else found,
            )
    return file.getvalue()


@pytest.fixture
def machine() -> Iterator[DockerContainer]:
    """A bare Debian with a clone; whoever would be asked says yes, and services are started by
    hand.
    """
    with DockerContainer("debian:bookworm-slim").with_command("sleep infinity") as made:
        typed(made, f"mkdir {CLONE}")
        typed(made, "echo 'APT::Get::Assume-Yes \"true\";' >/etc/apt/apt.conf.d/90yes")
        assert made.get_wrapped_container().put_archive(CLONE, cloned())
        yield made


def typed(machine: DockerContainer, lines: str, user: str = "root", **given: str) -> str:
    """What commands print, which may use what is given as variables; each must succeed."""
    status, printed = ran(
        machine, ["sh", "-euc", f"{lines} 2>&1"], user, DEBIAN_FRONTEND="noninteractive", **given
    )
    assert status == 0, printed
    return printed


def test_its_commands_lead_to_a_server_that_trains(machine: DockerContainer) -> None:
    typed(machine, f"cd {CLONE}; exec 2>&1\n{SHELL}")
    typed(machine, "service postgresql start")
    assert "`createdb flowers`, `psql flowers`, both as the system user `postgres`" in INSTALL
    typed(
        machine,
        "cd /; createdb flowers; printenv SQL | psql -v ON_ERROR_STOP=1 flowers",
        "postgres",
        SQL=SQL,
    )
    typed(
        machine,
        f"cd {HERE}; {{ printenv HBA; cat pg_hba.conf; }} >new; cat new >pg_hba.conf; rm new",
        HBA=HBA,
    )
    typed(machine, f"printenv IDENT >>{HERE}/pg_ident.conf", IDENT=IDENT)
    typed(machine, "service postgresql reload; useradd --create-home ann")
    assert "`/opt/cerebro/bin/cerebro-db check --url postgresql://…`" in INSTALL
    for user in ("postgres", "ann"):
        told = typed(
            machine, "cd /; /opt/cerebro/bin/cerebro-db check --url postgresql:///flowers", user
        )
        assert "FAIL" not in told and f"worker sessions: a session opens as {user}" in told
    tour = ran(machine, ["psql", "--file", f"{CLONE}/tests/sql/tour.sql", "flowers"], "ann")
    assert tour == (0, (ROOT / "tests/sql/tour.out").read_text())
