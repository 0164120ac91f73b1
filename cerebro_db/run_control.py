"""Acts on a live run, whoever has begun it. One method per SQL function; each returns the id of the
act.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cerebro_db.sql_session import SqlSession


class RunControl:
    """Methods that steer a run while another session waits for it."""

    _sql: SqlSession

    def stop_config(self, run_id: int, mst_key: int) -> int:
        """Lets a configuration begin no further visit: cerebro.stop_config."""
        return int(self._sql.call_cerebro("stop_config", run_id=run_id, mst_key=mst_key))

    def continue_config(self, run_id: int, mst_key: int) -> int:
        """Trains a configuration on that was stopped or rests: cerebro.continue_config."""
        return int(self._sql.call_cerebro("continue_config", run_id=run_id, mst_key=mst_key))

    def clone_config(
        self, run_id: int, mst_key: int, change: Mapping[str, Any], *, warm: bool = True
    ) -> int:
        """Adds a configuration like another one, but for some parameters: cerebro.clone_config."""
        arguments = {
            "run_id": run_id,
            "mst_key": mst_key,
            "change": json.dumps(change),
            "warm": warm,
        }
        return int(self._sql.call_cerebro("clone_config", **arguments))

    def add_configs(
        self,
        run_id: int,
        space: Mapping[str, object] | None = None,
        n: int | None = None,
        selection_table: str | None = None,
    ) -> int:
        """Adds `n` configurations of a space, or those of a model selection table:
        cerebro.add_configs.
        """
        drawn = {"space": None if space is None else json.dumps(space), "n": n}
        return int(
            self._sql.call_cerebro(
                "add_configs", run_id=run_id, **drawn, selection_table=selection_table
            )
        )

    def drill_down(
        self, run_id: int, mst_key: int, space: Mapping[str, object], n: int | None = None
    ) -> int:
        """Adds configurations that are like one, but for what the space says:
        cerebro.drill_down.
        """
        arguments = {"run_id": run_id, "mst_key": mst_key, "space": json.dumps(space), "n": n}
        return int(self._sql.call_cerebro("drill_down", **arguments))

    def set_epochs(self, run_id: int, n: int, mst_key: int | None = None) -> int:
        """Says for how many epochs a configuration, or all of them, are trained:
        cerebro.set_epochs.
        """
        return int(self._sql.call_cerebro("set_epochs", run_id=run_id, n=n, mst_key=mst_key))

    def prioritise(self, run_id: int, mst_key: int) -> int:
        """Lets a configuration take workers before all others: cerebro.prioritise."""
        return int(self._sql.call_cerebro("prioritise", run_id=run_id, mst_key=mst_key))

    def pause_run(self, run_id: int) -> int:
        """Lets a run begin no further visit: cerebro.pause_run."""
        return int(self._sql.call_cerebro("pause_run", run_id=run_id))

    def continue_run(self, run_id: int) -> int:
        """Lets a run go on that was paused: cerebro.continue_run."""
        return int(self._sql.call_cerebro("continue_run", run_id=run_id))
