"""The notebook of the docs runs from its first cell to its last, and its answers show
themselves.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, NamedTuple

import nbclient
import nbformat
import pytest
from servers import Database
from sqlalchemy import make_url

pytestmark = pytest.mark.long
NOTEBOOK = Path(__file__).parents[3] / "docs" / "tutorials" / "notebook.ipynb"


class Notebooks(NamedTuple):
    """The notebook as it is stored, and as it was executed now."""

    stored: Any
    executed: Any


@pytest.fixture(scope="module")
def outputs(notebooks: Notebooks) -> list[dict[str, Any]]:
    """What the cells put out, in their order: by media type."""
    cells = notebooks.executed.cells
    return [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]


@pytest.fixture(scope="module")
def notebooks(shared_database: Database, tmp_path_factory: pytest.TempPathFactory) -> Notebooks:
    """Execute the notebook on a server of the tests."""
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
    stored = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    return Notebooks(stored, notebook)


def test_the_leaderboard_has_bars_and_the_curves_are_a_picture(
    outputs: list[dict[str, Any]],
) -> None:
    shown = [output["text/html"] for output in outputs if "text/html" in output]
    assert any(text.startswith("<table>") and text.count("<meter") == 4 for text in shown)
    (curves,) = (output["image/png"] for output in outputs if "image/png" in output)
    assert base64.b64decode(curves).startswith(b"\x89PNG")
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


def test_what_is_stored_in_it_is_what_its_cells_show(notebooks: Notebooks) -> None:
    """A page that shows the notebook has no server: outputs of the same kinds are stored in it."""
    nbformat.validate(notebooks.stored)
    for stored, executed in zip(notebooks.stored.cells, notebooks.executed.cells, strict=True):
        assert list_kinds(stored) == list_kinds(executed)
    text = NOTEBOOK.read_text()
    assert len(text) < 400_000 and "/tmp/" not in text and "/root" not in text


def list_kinds(cell: Any) -> list[list[str]]:
    """Return the media types of each output of a cell."""
    return [sorted(output["data"]) for output in cell.get("outputs", []) if "data" in output]
