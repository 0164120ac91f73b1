"""The models of a logged run, rebuilt to resume or reproduce it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.custom_functions import (
    Functions,
    list_changed_functions,
    read_logged_functions,
)
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.run_spec import DataSpec, RunSpec
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.operations.fit.config_sampling import restore_sampling
from cerebro_plpy.operations.fit.input_tables import ModelInputs
from cerebro_plpy.operations.fit.spec_request import read_rule
from cerebro_plpy.operations.train import template_sampling
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.call_context import CallContext
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import StoredModel, find_table, read_architectures
from cerebro_plpy.tables.compatibility import name_metrics
from cerebro_plpy.tables.model_selection_table import check_callbacks


def load_logged_models(
    catalog: Catalog,
    context: CallContext,
    spec: RunSpec,
    functions: Functions | None,
    log: Sequence[Row],
    source: PackedTable,
) -> ModelInputs:
    """Return the configurations that did not fail, with their original architectures.

    Args:
        log: the logged configurations of the run.
    """
    active = [row for row in log if row["status"] != "failed"]
    table = None
    weighted_models: set[int] = set()
    if not spec.train:
        untrained = sorted({row["model_id"] for row in active if not row["trained"]})
        table, weighted_models = _find_architectures(catalog, context, spec, untrained)
    architectures = {}
    for row in log:
        model_id = row["model_id"]
        has_weights = model_id in weighted_models
        architectures[model_id] = StoredModel(model_id, row["architecture"], has_weights)
    parsed_configs = (parse_config(row, functions) for row in active)
    configs = name_metrics(parsed_configs, architectures, source, context.check)
    check_callbacks(catalog.db, (config.fit for config in configs))
    backends = {row["mst_key"]: row["backend"] for row in active if row["backend"]}
    models = ModelInputs(configs, architectures, table, backends)
    rule = read_rule(catalog.module, spec)
    if rule is None or rule.sampling is None:
        return models
    if spec.train:
        sampling = template_sampling.resume_sampling(spec, rule.sampling, log)
        models = models._replace(sampling=sampling)
    else:
        models = restore_sampling(context, models, rule.sampling, log, functions)
    assert models.sampling is not None
    return models._replace(sampling=models.sampling._replace(prior_trials=spec.prior_trials))


def parse_config(row: Row, functions: Functions | None) -> Config:
    """Parse a logged configuration."""
    return Config(
        row["mst_key"],
        row["model_id"],
        row["compile_params"],
        row["fit_params"],
        parse_compile_params(row["compile_params"], functions),
        parse_fit_params(row["fit_params"]),
        template=row["template"],
        params=json.loads(row["params"]) if row["template"] else None,
        group=row["group_value"],
    )


def read_functions(catalog: Catalog, spec: RunSpec) -> Functions | None:
    """Return the custom functions of a run.

    Raises:
        ObjectNotReady: their sources have changed since the run began.
    """
    original = read_logged_functions(spec.object_table, spec.functions)
    if original is None:
        return None
    current = object_table.find_functions(catalog, original.table)
    changed_names = list_changed_functions(original, current)
    if changed_names:
        raise ObjectNotReady(
            f"{catalog.module} error: custom functions {', '.join(changed_names)} of object table "
            f"{original.table} are not what they were when the run began.",
            hint="A run continues with the functions that it began with. Register them again under "
            "their names, or train again.",
        )
    return current


def _find_architectures(
    catalog: Catalog, context: CallContext, spec: RunSpec, untrained: Sequence[int]
) -> tuple[Relation, set[int]]:
    """Find the architecture table, and the untrained models that start from weights in it."""
    table = find_table(catalog, spec.tables["architectures"])
    models = read_architectures(context.reader, table, list(untrained))
    missing = sorted(set(untrained) - models.keys())
    if missing:
        raise ObjectNotReady(
            f"table {table.spelling} has no models {missing} any more, with whose weights "
            "configurations begin",
            hint="Load them again by load_keras_model(), under the same model_id.",
        )
    return table, {model_id for model_id, model in models.items() if model.has_weights}


def check_unchanged(table: PackedTable, logged: DataSpec, segments: Sequence[int]) -> None:
    """Check that a packed table is the same as when the run began.

    Raises:
        ObjectNotReady: it has changed.
    """
    differing = table.spec().list_differences(logged)
    if list(table.segments) != list(segments):
        differing.append("segments")
    if differing:
        raise ObjectNotReady(
            f"packed table {table.relation.spelling} is not what it was when the run began: "
            f"{', '.join(differing)} differ",
            hint="A run continues with the table that it began with. Train again.",
        )
