"""Sessions that look at raw tables otherwise than a worker session: see
`cerebro_plpy.database.platform_protocol.Reader`.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from workbench import Workbench, superuser

from cerebro_plpy.database.sessions.spi import number_placeholders
from cerebro_plpy.database.sql.literals import parameter_type

SPI = """
CREATE FUNCTION public.run_by_spi(work bytea) RETURNS bytea LANGUAGE plpython3u AS $$
import pickle

statement, types, values = pickle.loads(work)
rows = plpy.execute(plpy.prepare(statement, types), values) if types else plpy.execute(statement)
return pickle.dumps([tuple(row.values()) for row in rows] if rows.colnames() else [])
$$"""


class SpiSession:
    """Statements as the caller's own session runs them: in SPI, with parameters that have types."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        administrator = superuser(bench)
        if administrator.value("SELECT to_regprocedure('public.run_by_spi(bytea)') IS NULL"):
            administrator.rows(SPI)
        administrator.close()

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, whose placeholders take these values."""
        work = (
            number_placeholders(statement),
            [parameter_type(value) for value in values],
            list(values),
        )
        found: list[tuple[Any, ...]] = pickle.loads(
            self._bench.value("SELECT public.run_by_spi(%s)", pickle.dumps(work))
        )
        return found
