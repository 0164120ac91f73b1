"""Session methods that control a live run, which any session may have started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebro_db.arguments import encode_options
from cerebro_db.sql_session import SqlSession


class RunControl:
    """Session methods that send a command to a run while another session waits for the run.

    Each method calls the SQL function of its name and returns the id of the command.
    """

    _sql: SqlSession

    def stop_config(self, run_id: int, mst_key: int) -> int:
        """Stop a configuration: it starts no further visit (cerebro.stop_config)."""
        return self._send("stop_config", run_id=run_id, mst_key=mst_key)

    def continue_config(self, run_id: int, mst_key: int) -> int:
        """Train a stopped configuration on to the last epoch (cerebro.continue_config)."""
        return self._send("continue_config", run_id=run_id, mst_key=mst_key)

    def clone_config(
        self, run_id: int, mst_key: int, change: Mapping[str, Any], *, warm: bool = True
    ) -> int:
        """Add a copy of a configuration with some parameters changed (cerebro.clone_config)."""
        return self._send("clone_config", run_id=run_id, mst_key=mst_key, change=change, warm=warm)

    def add_configs(
        self,
        run_id: int,
        space: Mapping[str, object] | None = None,
        configs: int | None = None,
        selection_table: str | None = None,
    ) -> int:
        """Add configurations to a run (cerebro.add_configs).

        Args:
            space: search space from which `configs` configurations are sampled.
            selection_table: model selection table whose configurations are added.
        """
        return self._send(
            "add_configs",
            run_id=run_id,
            space=space,
            configs=configs,
            selection_table=selection_table,
        )

    def drill_down(
        self, run_id: int, mst_key: int, space: Mapping[str, object], configs: int | None = None
    ) -> int:
        """Add copies of a configuration with parameters sampled from a space (cerebro.drill_down).

        Parameters that the space does not contain keep their values.
        """
        return self._send(
            "drill_down", run_id=run_id, mst_key=mst_key, space=space, configs=configs
        )

    def set_epochs(self, run_id: int, epochs: int, mst_key: int | None = None) -> int:
        """Set the number of epochs of a configuration, or of all (cerebro.set_epochs)."""
        return self._send("set_epochs", run_id=run_id, epochs=epochs, mst_key=mst_key)

    def prioritize(self, run_id: int, mst_key: int) -> int:
        """Assign workers to a configuration before all others (cerebro.prioritize)."""
        return self._send("prioritize", run_id=run_id, mst_key=mst_key)

    def pause_run(self, run_id: int) -> int:
        """Pause a run: it starts no further visit (cerebro.pause_run)."""
        return self._send("pause_run", run_id=run_id)

    def continue_run(self, run_id: int) -> int:
        """Continue a run that is paused (cerebro.continue_run)."""
        return self._send("continue_run", run_id=run_id)

    def _send(self, function: str, /, **arguments: object) -> int:
        return int(self._sql.call_cerebro(function, **encode_options(arguments)))
