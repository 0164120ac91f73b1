"""Models by name: what a version of one is, and how it is found.

Its owner may have changed the rows that it is read from, so that whatever relies on one checks it first.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerebro_plpy.features.recipe import Recipe
from cerebro_plpy.platform.state_tables import version_table


@dataclass(frozen=True)
class Version:
    """A trained model under a name, with all that predictions need.

    `classes` are the texts of the classes in the order of the outputs, none of a regression; `margin` is how far nine
    tenths of the rows that were held back lie from their predictions, at most. `source` is quoted.
    """

    owner: str
    model: str
    version: int
    run_id: int
    mst_key: int
    task: str
    source: str
    target: str
    target_type: str
    recipe: Recipe
    classes: tuple[str, ...]
    margin: float | None
    architecture: str
    compile_params: str
    backend: str

    @property
    def state_table(self) -> str:
        """The table that holds the state, quoted."""
        return version_table(self.run_id, self.mst_key)
