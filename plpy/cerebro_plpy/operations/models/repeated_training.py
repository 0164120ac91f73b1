"""A second training of configurations of a run, to the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from cerebro_plpy.configs.params.callbacks import NO_CALLBACKS
from cerebro_plpy.configs.run_spec import RunSpec
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.operations.fit.drop_run_tables import discard_run
from cerebro_plpy.operations.fit.input_tables import ModelInputs
from cerebro_plpy.operations.fit.spec_request import make_replay, make_request
from cerebro_plpy.operations.live.logged_models import load_logged_models
from cerebro_plpy.operations.refit.all_rows import PackedRows
from cerebro_plpy.operations.train.model_lineage import make_warm_states
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.records import dataclass, replace
from cerebro_plpy.run.lifecycle import RunListeners, train
from cerebro_plpy.run.request.replay import RunRecord, read_run_record
from cerebro_plpy.run.request.run_request import Ending, FitRequest
from cerebro_plpy.tables.outputs import logged_run

MODULE = "verify"


@dataclass(frozen=True)
class RepeatedTraining:
    """Configurations of a run that another run trains again; that one is removed afterwards."""

    catalog: Catalog
    context: CallContext
    original_id: int  # the run that is repeated
    run_spec: RunSpec  # of that run
    configs: Mapping[int, Row]  # as the log contains them, by mst_key
    run_id: int  # the repeated run

    def train(self, rows: PackedRows, name: str) -> dict[int, StoredState]:
        """Train the configurations until the epochs of their states; return those by mst_key.

        Args:
            rows: those that the run was trained on.
            name: of the repeated run.
        """
        request = self._make_request(rows, name)
        train(self.catalog.db, self.context, request, None, RunListeners(), self.run_id)
        states = {}
        for row in logged_run.read_configs(self.catalog.db, self.run_id):
            state = logged_run.stored_state(row)
            assert state is not None
            states[row["mst_key"]] = state
        return states

    def discard(self) -> None:
        """Remove the repeated run; if the session is lost, cerebro.vacuum_runs does later."""
        with suppress(CerebroError):
            discard_run(self.context.control, self.run_id)

    def _make_request(self, rows: PackedRows, name: str) -> FitRequest:
        """Return a replay of the configurations.

        The other configurations of the original run have no influence on the bits.
        """
        train_spec = self.run_spec.train
        assert train_spec is not None
        arguments = replace(
            self.run_spec.arguments,
            name=name,
            replay_run=self.original_id,
            workers=1,
            search=None,  # a replay reads the decisions of the search from the log
            search_params=None,
        )
        spec = replace(self.run_spec, arguments=arguments)
        record = read_run_record(self.context.control, MODULE, self.original_id)
        last_epochs = {
            mst_key: row["best_epoch"] or _find_last_epoch(record, mst_key)
            for mst_key, row in self.configs.items()
        }
        epochs = max(last_epochs.values())
        models = self._load_models(spec, rows)
        repeat = make_replay(self.catalog, record, epochs, rows.data.source, last_epochs)
        visits = _count_visits(record, last_epochs)
        replay_spec = replace(
            spec,
            epochs=epochs,
            evaluate_epochs=(),  # the comparison needs states, not metrics
            schedule="replay",
            tables={table: name.quoted for table, name in rows.inputs.get_relations().items()},
            train=None,
        )
        request = make_request(
            self.catalog,
            self.context,
            replay_spec,
            rows.data,
            models,
            replace(repeat, endings=visits),
        )
        return replace(
            request,
            warm_states=make_warm_states(self.context.platform, train_spec),
            is_quiet=True,
            groups=train_spec.grouping.layouts,
            block_rows=train_spec.grouping.block_rows,
        )

    def _load_models(self, spec: RunSpec, rows: PackedRows) -> ModelInputs:
        """Load the configurations from the log, without callbacks, which would need metrics."""
        log = list(self.configs.values())
        models = load_logged_models(self.catalog, self.context, spec, None, log, rows.data.source)
        configs = tuple(
            replace(config, fit=replace(config.fit, callbacks=NO_CALLBACKS))
            for config in models.configs
        )
        return models._replace(configs=configs)


def _find_last_epoch(record: RunRecord, mst_key: int) -> int:
    """Return the last epoch of a configuration that has visits; else that of the run."""
    epochs = [epoch for key, epoch in record.orders if key == mst_key]
    return max(epochs, default=record.epochs)


def _count_visits(record: RunRecord, last_epochs: Mapping[int, int]) -> dict[int, Ending]:
    """Return the visits until each configuration's last epoch, by mst_key.

    There a configuration ends: its state was kept, or the budget ended it. Nothing is evaluated.
    """
    visits = dict.fromkeys(last_epochs, 0)
    for (mst_key, epoch), segments in record.orders.items():
        if epoch <= last_epochs.get(mst_key, 0):
            visits[mst_key] += len(segments)
    return {mst_key: Ending(count, evaluated=False) for mst_key, count in visits.items()}
