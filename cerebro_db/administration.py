"""Session methods for administration: privileges, reports, removal of old runs, and help."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from cerebro_db.sql_session import SqlSession


class Administration:
    """Session methods that neither train nor predict."""

    _sql: SqlSession

    def grant_usage(self, role: str, *, keep_trainers: bool | None = None) -> None:
        """Grant a role the use of the extension (cerebro.grant_usage); for administrators.

        Args:
            keep_trainers: set to false if several tenants share the role; trainers of one session
                are then not kept for the next.
        """
        self._sql.call_cerebro("grant_usage", role=role, keep_trainers=keep_trainers)

    def revoke_usage(self, role: str) -> None:
        """Revoke the use of the extension from a role (cerebro.revoke_usage)."""
        self._sql.call_cerebro("revoke_usage", role=role)

    def set(self, name: str, value: str | float | None) -> None:
        """Change a setting of the database (cerebro.set); for administrators.

        Args:
            value: None returns to the default.
        """
        if value is not None:
            value = str(value)
        self._sql.call_cerebro("set", name=name, value=value)

    def gpu_configuration(self, output_table: str, source: str = "tensorflow") -> None:
        """Write a table of the GPUs of each host (gpu_configuration)."""
        self._sql.call("gpu_configuration", output_table=output_table, source=source)

    def versions(self) -> dict[str, Any]:
        """Return the versions of the extension and of the server's Python (cerebro.python_version).

        Versions of the package cerebro_plpy and of psycopg2 are included.
        """
        return dict(self._sql.call_cerebro("python_version"))

    def trainer_report(self, framework: str = "tensorflow") -> dict[str, Any]:
        """Start a trainer and return its versions and devices (cerebro.trainer_report)."""
        return dict(self._sql.call_cerebro("trainer_report", framework=framework))

    def worker_report(self) -> dict[str, Any]:
        """Open a worker session as a run does, and return its role (cerebro.worker_report)."""
        return dict(self._sql.call_cerebro("worker_report"))

    def vacuum_runs(self, older_than: timedelta = timedelta(days=7)) -> int:
        """Remove the states of the caller's old runs (cerebro.vacuum_runs).

        Args:
            older_than: minimum time since a run ended.

        Returns:
            Removed bytes.
        """
        return int(self._sql.call_cerebro("vacuum_runs", older_than=older_than))

    def drop_features(self, source: str | None = None) -> int:
        """Remove the cached activations of frozen layers (cerebro.drop_features).

        Args:
            source: packed table whose activations are removed; all tables if it is None.

        Returns:
            Removed bytes.
        """
        return int(self._sql.call_cerebro("drop_features", source=source))

    def drop_run(self, run_id: int) -> None:
        """Remove the log and the states of a run, not its output tables (cerebro.drop_run)."""
        self._sql.call_cerebro("drop_run", run_id=run_id)

    def help(self, name: str | None = None, message: str | None = None) -> str:
        """Return the reference of an SQL function (cerebro.help).

        Args:
            name: name of the function; without it, all functions are listed.
            message: 'usage' for the complete text.
        """
        return str(self._sql.call_cerebro("help", name=name, message=message))
