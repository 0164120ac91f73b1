"""The scripts of tests/sql/guide, which show MADlib's users what they know: they run, and their own checks hold.

They are written for an extension in schema madlib. For another schema they are changed as a user would change them,
by a search for `madlib.`
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg2.extensions import quote_ident
from servers import Database
from workbench import Workbench, opened

from cerebro_db import provision

FOLDER = Path(__file__).parents[1] / "sql"
SUPERUSERS = "_superuser"
"""The end of the name of a script that a superuser runs before the one without it."""
CHECKED = sorted(path.stem for path in (FOLDER / "guide").glob("*.sql") if not path.stem.endswith(("_data", SUPERUSERS)))
SCHEMAS = ["madlib", "Deep Learning"]


def moved(superuser: Workbench, schema: str) -> None:
    """Makes the extension anew in a schema of another name, with its settings."""
    settings = superuser.rows("SELECT name, value FROM cerebro.setting")
    name = quote_ident(schema, superuser.connection)
    superuser.rows("DROP EXTENSION cerebro_db")
    superuser.rows(f"CREATE SCHEMA {name}")
    superuser.rows(f"CREATE EXTENSION cerebro_db SCHEMA {name}")
    superuser.rows(f"GRANT USAGE ON SCHEMA {name} TO {provision.ROLE}")
    superuser.rows(f"SELECT cerebro.grant_usage('{provision.ROLE}')")
    for setting in settings:
        superuser.rows(
            "INSERT INTO cerebro.setting (name, value) VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            *setting,
        )


@pytest.fixture(scope="module", params=SCHEMAS)
def scripts(
    request: pytest.FixtureRequest, shared_database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder with the scripts for the schema in which the extension is."""
    folder = tmp_path_factory.mktemp("sql")
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    with opened(shared_database.superuser_url) as superuser:
        if request.param != "madlib":
            moved(superuser, request.param)
        name = quote_ident(request.param, superuser.connection)
    for path in (folder / "guide").glob("*.sql"):
        path.write_text(re.sub(r"\bmadlib\.", f"{name}.", path.read_text()))
    yield folder / "guide"


def psql(url: str, script: Path) -> None:
    command = ["psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", str(script), url]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", CHECKED)
def test_a_script_of_the_guide(scripts: Path, shared_database: Database, name: str) -> None:
    first = scripts / f"{name}{SUPERUSERS}.sql"
    if first.exists():
        psql(shared_database.superuser_url, first)
    psql(shared_database.url, scripts / f"{name}.sql")
