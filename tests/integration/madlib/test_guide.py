"""The scripts of tests/sql/guide, which show MADlib's users what they know: they run, and their own
checks hold.

They are written for an extension in schema madlib. For another schema they are changed as a user
would change them, by a search for `madlib.`
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from scripts import printed
from servers import Database
from workbench import Workbench, opened

from cerebro_db.server import provision

FOLDER = Path(__file__).parents[2] / "sql"
SUPERUSERS = "_superuser"
"""The end of the name of a script that a superuser runs before the one without it."""
CHECKED = sorted(
    path.stem
    for path in (FOLDER / "guide").glob("*.sql")
    if not path.stem.endswith(("_data", SUPERUSERS))
)
QUOTED = ("byom", "classification")
"""In a schema whose name must be quoted these do."""
CASES = [("madlib", name) for name in CHECKED] + [("Deep Learning", name) for name in QUOTED]
PLACE = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'cerebro_db'"


def moved(superuser: Workbench, schema: str) -> None:
    """Makes the extension anew in a schema of another name, with its settings."""
    settings = superuser.rows("SELECT name, value FROM cerebro.setting")
    for statement in (
        "DROP EXTENSION cerebro_db CASCADE",
        f"CREATE SCHEMA IF NOT EXISTS {schema}",
        f"CREATE EXTENSION cerebro_db SCHEMA {schema}",
        f"GRANT USAGE ON SCHEMA {schema} TO {provision.ROLE}",
        f"SELECT cerebro.grant_usage('{provision.ROLE}')",
        "DELETE FROM cerebro.setting",
    ):
        superuser.rows(statement)
    for setting in settings:
        superuser.rows("INSERT INTO cerebro.setting (name, value) VALUES (%s, %s)", *setting)


@pytest.fixture(scope="module")
def scripts(
    request: pytest.FixtureRequest,
    shared_database: Database,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder with the scripts for the schema in which the extension is."""
    folder = tmp_path_factory.mktemp("sql")
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    with opened(shared_database.superuser_url) as superuser:
        name = superuser.value("SELECT quote_ident(%s)", request.param)
        if superuser.value(PLACE) != name:
            moved(superuser, name)
    for path in (folder / "guide").glob("*.sql"):
        path.write_text(re.sub(r"\bmadlib\.", f"{name}.", path.read_text()))
    return folder / "guide"


@pytest.mark.long
@pytest.mark.parametrize(("scripts", "name"), CASES, indirect=["scripts"])
def test_a_script_of_the_guide(scripts: Path, shared_database: Database, name: str) -> None:
    first = scripts / f"{name}{SUPERUSERS}.sql"
    if first.exists():
        printed(shared_database.superuser_url, first)
    printed(shared_database.url, scripts / f"{name}.sql")
