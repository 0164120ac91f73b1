"""What administrators ask: who may use the extension, what it runs on, and which versions it has."""

from __future__ import annotations

from typing import Any

from cerebro_db.calls import Calls


class Administration:
    """Methods of no run."""

    _calls: Calls

    def grant_usage(self, role: str, *, keep_trainers: bool | None = None) -> None:
        """Lets a role use the extension: cerebro.grant_usage. For administrators.

        Where a role is many tenants, `keep_trainers` false keeps trainers of one session from the next.
        """
        self._calls.call_cerebro("grant_usage", role=role, keep_trainers=keep_trainers)

    def gpu_configuration(self, output_table: str, source: str = "tensorflow") -> None:
        """Writes which GPUs the hosts have to `output_table`: gpu_configuration."""
        self._calls.call("gpu_configuration", output_table=output_table, source=source)

    def versions(self) -> dict[str, Any]:
        """Versions of the extension and of what runs in the server: cerebro.python_version."""
        return dict(self._calls.call_cerebro("python_version"))

    def trainer_report(self, framework: str = "tensorflow") -> dict[str, Any]:
        """Starts a trainer, and says its versions and devices: cerebro.trainer_report."""
        return dict(self._calls.call_cerebro("trainer_report", framework=framework))

    def worker_report(self) -> dict[str, Any]:
        """Opens a worker session as a run would, and says as whom: cerebro.worker_report."""
        return dict(self._calls.call_cerebro("worker_report"))
