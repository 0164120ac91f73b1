"""The list of what PostgreSQL 12 has, by which all SQL is checked without a Greenplum, is that of a
Greenplum.
"""

from __future__ import annotations

import pytest
from postgresql_12 import CATALOG, FILE
from workbench import Workbench

pytestmark = pytest.mark.parametrize("platform", ["greenplum"], indirect=True)


def test_the_list_of_its_objects_is_that_of_this_server(
    shared_superuser: Workbench, request: pytest.FixtureRequest
) -> None:
    """Releases of Greenplum 7 add to their catalog: what the oldest has is valid on all."""
    lines = [line for (line,) in shared_superuser.rows(CATALOG)]
    if request.config.getoption("--write-objects"):
        FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    recorded = FILE.read_text(encoding="utf-8").splitlines()
    assert set(recorded) - set(lines) == set(), "`make objects` writes the list anew"
