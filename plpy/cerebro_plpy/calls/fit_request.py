"""From the arguments of a fit call to a request that can be trained: everything is read and checked first."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cerebro_plpy.calls.fit_arguments import MAX_ATTEMPTS, FitArguments, OneModel
from cerebro_plpy.configs import frameworks
from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.custom_functions import Functions
from cerebro_plpy.configs.fit_params import parse_fit_params
from cerebro_plpy.database.caller_session import LocalSession
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.checks import seconds
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter, NullNotAllowed
from cerebro_plpy.packing.packed_table import PackedTable, along, read_packed
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.run import messages
from cerebro_plpy.run.replay import Forms, Orders, check_functions, check_recorded, read_recorded
from cerebro_plpy.run.request import FitRequest
from cerebro_plpy.tables import object_table
from cerebro_plpy.tables.architectures import StoredModel, existing
from cerebro_plpy.tables.compatibility import check_configs, check_validation, notices, with_metrics
from cerebro_plpy.tables.selection import ONE_KEY, SelectionSummary, read_configs, read_summary, told
from cerebro_plpy.trainer import settings

WRITER = "tensorflow"


class Again(NamedTuple):
    """What of an earlier run is repeated, or what a run of its own is given instead; no seed means any."""

    seed: int | None
    orders: Orders
    forms: Forms
    threads: int | None
    dtype_policy: str | None
    backends: dict[int, str]


class Models(NamedTuple):
    """What is trained: configurations, their architectures by model id, and the table that these are in."""

    configs: tuple[Config, ...]
    architectures: dict[int, StoredModel]
    table: Relation


def find_inputs(catalog: Catalog, given: FitArguments) -> dict[str, Relation]:
    """The tables that the call names, and their summaries, where those exist."""
    found = find_data(catalog, given.source_table, given.validation_table)
    if given.one:
        return found | referred(catalog, SelectionSummary(given.one["model_arch_table"], given.one["object_table"]))
    found |= with_summary(catalog, "selection", catalog.relation(given.model_selection_table, "model selection"))
    if "selection_summary" in found:
        found |= referred(catalog, read_summary(catalog, found["selection"], LocalSession(catalog.db)))
    return found


def referred(catalog: Catalog, named: SelectionSummary) -> dict[str, Relation]:
    """The tables to which configurations refer."""
    found = {"architectures": catalog.relation(named.architectures, "model architecture")}
    objects = object_table.find(catalog, named.objects)
    return {**found, "objects": objects} if objects else found


def find_data(catalog: Catalog, source: str | None, validation: str | None) -> dict[str, Relation]:
    """The packed tables, and their summaries, where those exist."""
    found = with_summary(catalog, "source", catalog.relation(source))
    if validation is not None:
        found |= with_summary(catalog, "validation", catalog.relation(validation, "validation"))
    return found


def with_summary(catalog: Catalog, name: str, table: Relation) -> dict[str, Relation]:
    """A table under a name, and its summary, where that exists."""
    summary = catalog.companion(table, "_summary")
    return {name: table, f"{name}_summary": summary} if summary else {name: table}


def build_request(catalog: Catalog, place: Workplace, given: FitArguments, checked: tuple[int, int, str]) -> FitRequest:
    """Read and check all that the run needs; nothing has been written when this fails."""
    epochs, frequency, schedule = checked
    source, validation = read_data(catalog, place, given)
    configs, summary = asked_for(catalog, place, given)
    table = existing(catalog, summary.architectures)
    architectures = read_architectures(place, table, sorted({c.model_id for c in configs}))
    check_configs(configs, architectures, source, table)
    configs = with_metrics(configs, architectures, source)
    check_writer(given, configs)
    tell(catalog, configs, source)
    mst_keys = [c.mst_key for c in configs]
    again = Again(given.seed, {}, {}, None, given.dtype_policy, frameworks.asked(given.backend, mst_keys))
    if schedule == "replay":
        again = recorded_order(place, given, epochs, source, mst_keys, functions_of(configs))
    seed = secrets.randbits(31) if again.seed is None else again.seed
    evaluated = evaluated_epochs(catalog, given, epochs, frequency)
    spec = {
        **specification(given, (source, validation), schedule), "model_arch_table": table.given, "seed": seed,
        "object_table": summary.objects, "dtype_policy": again.dtype_policy, "metrics_compute_frequency": frequency,
        "functions": functions_of(configs), "evaluate_epochs": evaluated,
        **messages.ranking(configs, validation is not None),
    }  # fmt: skip
    return requested(place, given, spec, (source, validation), Models(configs, architectures, table), again)


def asked_for(catalog: Catalog, place: Workplace, given: FitArguments) -> tuple[tuple[Config, ...], SelectionSummary]:
    """The configurations to train, and the tables that they refer to."""
    if given.one:
        summary = SelectionSummary(given.one["model_arch_table"], given.one["object_table"])
        return (one_config(given.one, object_table.functions(catalog, summary.objects)),), summary
    selection = catalog.relation(given.model_selection_table, "model selection")
    summary = read_summary(catalog, selection, place.reader)
    functions = object_table.functions(catalog, summary.objects)
    return read_configs(catalog, place.reader, selection, functions), summary


def requested(
    place: Workplace,
    given: FitArguments,
    spec: dict[str, Any],
    data: tuple[PackedTable, PackedTable | None],
    models: Models,
    again: Again,
) -> FitRequest:
    """The request that `spec` logs, over these data and models."""
    source, validation = data
    most = place.platform.most_workers(len(source.segments))
    return FitRequest(
        source=source,
        validation=validation,
        configs=models.configs,
        architectures=models.architectures,
        architecture_table=models.table,
        epochs=spec["num_iterations"],
        evaluate_epochs=tuple(spec["evaluate_epochs"]),
        seed=spec["seed"],
        schedule=spec["schedule"],
        workers=min(given.workers or most, len(source.segments)),
        gpus=settings.devices(place.settings, given.use_gpus),
        dtype_policy=spec["dtype_policy"],
        warm_states={},
        orders=again.orders,
        forms=again.forms,
        threads=again.threads,
        backends=again.backends,
        name=given.name,
        spec=spec,
        max_attempts=given.max_attempts or MAX_ATTEMPTS,
        max_runtime=seconds(place.db, given.module, "max_runtime", given.max_runtime),
        training_metrics=given.training_metrics is not False,
    )


def check_writer(given: FitArguments, configs: Iterable[Config]) -> None:
    """Callbacks are written by one framework alone."""
    if given.backend not in (None, WRITER) and any(config.fit.callbacks for config in configs):
        raise FeatureNotSupported(
            f"{given.module} error: backend is {given.backend!r}, but callbacks are written by TensorFlow.",
            hint="Leave backend out, or callbacks.",
        )


def functions_of(configs: Iterable[Config]) -> dict[str, str]:
    """The custom functions that configurations name, with the digests of their sources."""
    return {name: digest for c in configs if c.compile.custom for name, digest in c.compile.custom.digests}


def tell(catalog: Catalog, configs: Iterable[Config], source: PackedTable) -> None:
    """Notices about settings that are understood otherwise than a user may expect."""
    for text in sorted({f"mst_key={c.mst_key}: {note}" for c in configs for note in notices(c, source)}):
        catalog.db.notice(text)


def evaluated_epochs(catalog: Catalog, given: FitArguments, epochs: int, frequency: int) -> tuple[int, ...]:
    """The epochs that end with an evaluation; the caller is told where there is nothing to evaluate on."""
    if given.training_metrics is not False or given.validation_table is not None:
        return metrics_iterations(epochs, frequency)
    catalog.db.notice("training_metrics is false and there is no validation_table: no metrics will be computed.")
    return ()


def specification(given: FitArguments, data: tuple[PackedTable, PackedTable | None], schedule: str) -> dict[str, Any]:
    """The arguments of the call as they were understood, for the log."""
    source, validation = data
    return {
        **vars(given),
        "schedule": schedule,
        "warm_start": bool(given.warm_start),
        "segments": source.segments,
        "source": source.described(),
        "validation": validation and validation.described(),
    }


def read_data(catalog: Catalog, place: Workplace, given: FitArguments) -> tuple[PackedTable, PackedTable | None]:
    """The packed training table, and the validation table spread over the same segments."""
    source = read_packed(catalog, place.reader, given.source_table)
    if given.validation_table is None:
        return source, None
    validation = read_packed(catalog, place.reader, given.validation_table, "validation")
    check_validation(catalog, source, validation)
    return source, along(source, validation)


def recorded_order(
    place: Workplace,
    given: FitArguments,
    epochs: int,
    source: PackedTable,
    mst_keys: list[int],
    functions: Mapping[str, str],
) -> Again:
    """What a replay takes over from the run that it repeats."""
    recorded = read_recorded(place.control, given.module, given.replay_run)
    if given.seed is not None and given.seed != recorded.seed:
        raise InvalidParameter(
            f"{given.module} error: seed is {given.seed}, but run {recorded.run_id} had seed {recorded.seed}.",
            hint="Leave seed out: a replay takes that of the run it repeats.",
        )
    if given.dtype_policy not in (None, recorded.dtype_policy):
        raise InvalidParameter(
            f"{given.module} error: dtype_policy is {given.dtype_policy!r}, but run {recorded.run_id} had"
            f" {recorded.dtype_policy!r}.",
            hint="Leave dtype_policy out: a replay takes that of the run it repeats.",
        )
    check_functions(given.module, recorded, functions)
    orders = check_recorded(given.module, recorded, epochs, source.segments, mst_keys)
    return Again(recorded.seed, orders, recorded.forms, recorded.threads, recorded.dtype_policy, recorded.backends)


def metrics_iterations(epochs: int, frequency: int) -> tuple[int, ...]:
    """Every frequency-th epoch, and always the last.

    >>> metrics_iterations(7, 2)
    (2, 4, 6, 7)
    """
    return tuple(e for e in range(1, epochs + 1) if e % frequency == 0 or e == epochs)


def read_architectures(place: Workplace, table: Relation, model_ids: list[int]) -> dict[int, StoredModel]:
    """The architectures by model id."""
    rows = place.reader.run(sql("read.architectures", table=table.quoted), (model_ids,))
    return {row[0]: StoredModel(*row) for row in rows}


def one_config(given: OneModel, functions: Functions | None) -> Config:
    """The configuration of a call that trains a single model."""
    for name in ("model_id", "compile_params"):
        if given[name] is None:
            raise NullNotAllowed(
                f"{name} cannot be NULL", hint="Name a model of the architecture table, and give its parameters."
            )
    compile_text, fit_text = given["compile_params"] or "", given["fit_params"] or ""
    with told("Compile", compile_text):
        compiled = parse_compile_params(compile_text, functions)
    with told("Fit", fit_text):
        fitted = parse_fit_params(fit_text)
    return Config(ONE_KEY, given["model_id"] or 0, compile_text, fit_text, compiled, fitted)
