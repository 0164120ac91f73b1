"""Methods for who looks after an installation: privileges, versions, what the machines have, and help."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from cerebro_db.calls import Calls


class Administration(Calls):
    """See `session.Session`."""

    def vacuum_runs(self, older_than: timedelta = timedelta(days=7)) -> int:
        """Removes the states of own runs that ended so long ago; returns their bytes: cerebro.vacuum_runs."""
        return int(self._call_cerebro("vacuum_runs", older_than=older_than))

    def drop_run(self, run_id: int) -> None:
        """Removes the log and the states of a run; its output tables stay: cerebro.drop_run."""
        self._call_cerebro("drop_run", run_id=run_id)

    def grant_usage(self, role: str) -> None:
        """Lets a role use the extension: cerebro.grant_usage. For administrators."""
        self._call_cerebro("grant_usage", role=role)

    def grant_predict(self, model_table: str, role: str) -> None:
        """Lets a role predict with the models of a table, without reading their weights: cerebro.grant_predict."""
        self._call_cerebro("grant_predict", model_table=model_table, role=role)

    def revoke_predict(self, model_table: str, role: str) -> None:
        """Takes back what grant_predict gave to a role: cerebro.revoke_predict."""
        self._call_cerebro("revoke_predict", model_table=model_table, role=role)

    def help(self, name: str | None = None, message: str | None = None) -> str:
        """What the reference says of an SQL function, with the message 'usage' all of it: cerebro.help.

        Without a name it lists all of them.
        """
        return str(self._call_cerebro("help", name=name, message=message))

    def gpu_configuration(self, output_table: str, source: str = "tensorflow") -> None:
        """Writes which GPUs the hosts have to `output_table`: gpu_configuration."""
        self._call("gpu_configuration", output_table=output_table, source=source)

    def versions(self) -> dict[str, Any]:
        """Versions of the extension and of what runs in the server: cerebro.python_version."""
        return dict(self._call_cerebro("python_version"))

    def trainer_report(self, framework: str = "tensorflow") -> dict[str, Any]:
        """Starts a trainer, and says its versions and devices: cerebro.trainer_report."""
        return dict(self._call_cerebro("trainer_report", framework=framework))

    def worker_report(self) -> dict[str, Any]:
        """Opens a worker session as a run would, and says as whom: cerebro.worker_report."""
        return dict(self._call_cerebro("worker_report"))
