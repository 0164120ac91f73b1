"""The notebook of the docs runs from its first cell to its last, and its answers show
themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from servers import Database
from sqlalchemy import make_url

pytestmark = pytest.mark.long
NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def outputs(
    shared_database: Database, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What the cells put out, in their order: by media type."""
    url = make_url(shared_database.url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGHOST", str(url.query["host"]))
        patch.setenv("PGPORT", str(url.port))
        patch.setenv("PGUSER", str(url.username))
        patch.setenv("PGDATABASE", str(url.database))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
        client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
        client.execute(cwd=str(tmp_path_factory.mktemp("notebook")))
    return [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]


def test_the_leaderboard_has_bars_and_the_curves_are_a_picture(
    outputs: list[dict[str, Any]],
) -> None:
    shown = [output["text/html"] for output in outputs if "text/html" in output]
    assert any(text.startswith("<table>") and text.count("<meter") == 4 for text in shown)
    assert any(text.startswith("<svg") and "accuracy" in text for text in shown)
    assert any("<progress" in text and "completed" in text for text in shown)


def test_every_row_has_a_prediction(outputs: list[dict[str, Any]]) -> None:
    counted = next(
        output["text/plain"]
        for output in outputs
        if output.get("text/plain", "").startswith("prediction")
    )
    lines = [line.split() for line in counted.splitlines()[1:4]]
    assert {kind for kind, _ in lines} == {"north", "river", "hill"} and sum(
        int(count) for _, count in lines
    ) == 178


def test_nothing_was_written_into_it() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
