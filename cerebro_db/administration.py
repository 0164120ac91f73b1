"""What is kept in order beside the work: who may use the extension, what it runs on, which runs
stay, and its help.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from cerebro_db.sql_session import SqlSession


class Administration:
    """Methods that neither train nor predict."""

    _sql: SqlSession

    def grant_usage(self, role: str, *, keep_trainers: bool | None = None) -> None:
        """Lets a role use the extension: cerebro.grant_usage. For administrators.

        Where a role is many tenants, `keep_trainers` false keeps trainers of one session from the
        next.
        """
        self._sql.call_cerebro("grant_usage", role=role, keep_trainers=keep_trainers)

    def gpu_configuration(self, output_table: str, source: str = "tensorflow") -> None:
        """Writes which GPUs the hosts have to `output_table`: gpu_configuration."""
        self._sql.call("gpu_configuration", output_table=output_table, source=source)

    def versions(self) -> dict[str, Any]:
        """Versions of the extension and of what runs in the server: cerebro.python_version."""
        return dict(self._sql.call_cerebro("python_version"))

    def trainer_report(self, framework: str = "tensorflow") -> dict[str, Any]:
        """Starts a trainer, and says its versions and devices: cerebro.trainer_report."""
        return dict(self._sql.call_cerebro("trainer_report", framework=framework))

    def worker_report(self) -> dict[str, Any]:
        """Opens a worker session as a run would, and says as whom: cerebro.worker_report."""
        return dict(self._sql.call_cerebro("worker_report"))

    def vacuum_runs(self, older_than: timedelta = timedelta(days=7)) -> int:
        """Removes the states of own runs that ended so long ago; returns their bytes:
        cerebro.vacuum_runs.
        """
        return int(self._sql.call_cerebro("vacuum_runs", older_than=older_than))

    def drop_features(self, source_table: str | None = None) -> int:
        """Removes what frozen layers gave for a packed table, or for all; returns its bytes:
        cerebro.drop_features.
        """
        return int(self._sql.call_cerebro("drop_features", source_table=source_table))

    def drop_run(self, run_id: int) -> None:
        """Removes the log and the states of a run; its output tables stay: cerebro.drop_run."""
        self._sql.call_cerebro("drop_run", run_id=run_id)

    def help(self, name: str | None = None, message: str | None = None) -> str:
        """What the reference says of an SQL function, with the message 'usage' all of it:
        cerebro.help.

        Without a name it lists all of them.
        """
        return str(self._sql.call_cerebro("help", name=name, message=message))
