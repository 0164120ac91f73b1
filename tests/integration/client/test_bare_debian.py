"""The two commands of README.md, on a bare Debian: a clone, and one call of `./setup` in it."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import containers
import pytest
from containers import ran
from testcontainers.core.container import DockerContainer

ROOT = Path(__file__).parents[3]
CLONE = "/root/cerebro_db"
SETUP = [f"{CLONE}/setup", "--database", "flowers", "--role", "ann"]

# It downloads PostgreSQL and TensorFlow: some 500 MB.
pytestmark = [*containers.needed, pytest.mark.long, pytest.mark.timeout(1800)]


def clone_archive() -> bytes:
    """The files of the clone, those that git would commit."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in names.splitlines():
            archive.add(ROOT / name, f"{CLONE}/{name}")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def machine() -> Iterator[DockerContainer]:
    with DockerContainer("debian:bookworm-slim").with_command("sleep infinity") as container:
        assert container.get_wrapped_container().put_archive("/", clone_archive())
        yield container


def test_two_commands_lead_to_a_role_that_trains(machine: DockerContainer) -> None:
    status, output = ran(machine, [*SETUP, "--dry-run"])
    assert status == 0
    assert "apt-get install" in output
    assert "pip install" in output
    assert ran(machine, ["test", "-e", "/opt/cerebro"])[0] == 1

    status, output = ran(machine, SETUP)
    assert status == 0, output
    # Root's own way into the system user's account, because this Debian has no sudo.
    assert "Open a session of ann with: runuser -u postgres -- psql" in output
    session = ["psql", "--no-psqlrc", "-At", "--username", "ann", "flowers"]
    statements = [
        "CREATE TABLE mine AS SELECT i AS id, i % 7 AS a, i % 7 > 3 AS b"
        " FROM generate_series(1, 100) i",
        "SELECT status FROM cerebro.train('mine', 'b', models => '{linear}', configs => 1,"
        " epochs => 3, ensemble => 1, seed => 1)",
    ]
    words = [word for statement in statements for word in ("-c", statement)]
    assert ran(machine, [*session, *words], user="postgres") == (0, "SELECT 100\ncompleted\n")

    status, output = ran(machine, SETUP)
    assert status == 0
    assert "Nothing was to do." in output
    assert "DONE" not in output


def test_removal_leaves_debians_files(machine: DockerContainer) -> None:
    status, output = ran(machine, [*SETUP[:3], "--remove", "--drop-extension"])
    assert status == 0, output
    text = "grep cerebro /etc/postgresql/15/main/pg_hba.conf /etc/postgresql/15/main/pg_ident.conf"
    assert ran(machine, ["sh", "-c", text]) == (1, "")


def test_the_commands_of_the_page_remove_the_rest(machine: DockerContainer) -> None:
    page = (ROOT / "docs" / "reference" / "operations.md").read_text()
    _, _, section = page.partition("\n## Removing it\n")
    section, _, _ = section.partition("\n## ")
    commands = re.findall(r"^\| .* \| `(rm .*)` \|$", section, re.MULTILINE)
    assert len(commands) == 5, "this test finds nothing any more"
    (language,) = re.findall(r"`(DROP EXTENSION plpython3u;)`", section)
    session = ["psql", "--no-psqlrc", "flowers", "-c", language]
    assert ran(machine, session, user="postgres")[0] == 0
    for command in commands:
        assert ran(machine, ["bash", "-c", command]) == (0, ""), command
    assert ran(machine, ["apt-get", "remove", "-y", "postgresql-plpython3-15"])[0] == 0
    places = "/etc /opt /usr /var/lib/postgresql"
    search = f"find {places} -iname '*cerebro*' -not -path '*/base/*'"
    assert ran(machine, ["sh", "-c", search]) == (0, "")


def test_a_removal_of_nothing_installs_nothing(machine: DockerContainer) -> None:
    """After the environment is gone, or on a machine that never had it."""
    assert ran(machine, [*SETUP[:3], "--remove"]) == (1, "")
    assert ran(machine, ["test", "-e", "/opt/cerebro"])[0] == 1
