"""Session methods that return plans of runs as text, in the form of EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerebro_db.arguments import PlanFitOptions, encode_options
from cerebro_db.options import accept_options
from cerebro_db.sql_session import SqlSession

if TYPE_CHECKING:
    from typing import Unpack


class Plans:
    """Session methods that return a plan as text; with format 'json', the text is one document."""

    _sql: SqlSession

    @accept_options(PlanFitOptions)
    def plan_fit(
        self,
        source_table: str,
        model_selection_table: str,
        num_iterations: int,
        *,
        format: str = "text",
        **options: Unpack[PlanFitOptions],
    ) -> str:
        """Return the plan of a call of `fit` with its expected times (cerebro.plan_fit)."""
        lines = self._sql.query_cerebro(
            "plan_fit",
            source_table=source_table,
            model_selection_table=model_selection_table,
            num_iterations=num_iterations,
            format=format,
            **encode_options(options),
        )
        return "\n".join(line for (line,) in lines)

    def plan_of(self, run_id: int, format: str = "text") -> str:
        """Return the plan of a run with its actual times (cerebro.plan_of)."""
        lines = self._sql.query_cerebro("plan_of", run_id=run_id, format=format)
        return "\n".join(line for (line,) in lines)
