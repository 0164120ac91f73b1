"""Good configurations of earlier runs, which `cerebro.train` tries early.

A call names models or runs; otherwise, models of similar tables are used. A search that learns also
reads all trials of these runs: see `prior_runs`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.configs.prior_trials import BEST_PER_RUN, parse_run_name
from cerebro_plpy.configs.search_space.sampling import RANDOM
from cerebro_plpy.configs.templates.candidates import PriorConfig
from cerebro_plpy.database.call_checks import check_flat
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.errors import NullNotAllowed, UndefinedObject
from cerebro_plpy.operations.train_arguments import TrainArguments
from cerebro_plpy.preprocessing.learning.raw_table import RawTable


def read_named_configs(
    module: str, session: Session, names: Sequence[str | None] | None
) -> tuple[PriorConfig, ...]:
    """Return the best configurations of runs, and those of the deployed versions of models.

    Args:
        names: names of models, or texts like "run:12".

    Raises:
        UndefinedObject: a run or a model does not exist, or has no configuration of a template.
    """
    check_flat(module, "start_from", names)
    return tuple(config for name in names or () for config in _read_named(module, session, name))


def read_similar_configs(
    session: Session, arguments: TrainArguments, table: RawTable
) -> tuple[PriorConfig, ...]:
    """Return configurations of the caller's models with the same target and columns.

    There are none if a seed shall repeat the results of an earlier call.
    """
    if arguments.search == RANDOM or arguments.seed is not None:
        return ()
    columns = sorted(feature.column for feature in table.recipe.features)
    values = (table.target.column.name, table.target.task, columns, BEST_PER_RUN)
    return _parse_rows(session.run(sql("version.like"), values), "of {}")


def _read_named(module: str, session: Session, name: str | None) -> tuple[PriorConfig, ...]:
    hint = (
        "SELECT * FROM cerebro.model; or SELECT run_id, name FROM cerebro.run WHERE spec ? 'train';"
    )
    if name is None:
        raise NullNotAllowed(
            f"{module} error: start_from has a NULL; expected names of models, or 'run:12'.",
            hint=hint,
        )
    run_id = parse_run_name(name)
    if run_id is not None:
        kind = "run of cerebro.train"
        rows = session.run(sql("version.best_of_run"), (run_id, BEST_PER_RUN))
    else:
        kind = "model"
        rows = session.run(sql("version.like_model"), (name,))
    if not rows:
        if run_id is None:
            models = [row[0] for row in session.run(sql("version.names"))]
            if models:
                hint = near_matches(name, models)
        raise UndefinedObject(
            f"{module} error: start_from names {name!r}, but there is no such {kind} of yours, or "
            "it has no result.",
            hint=hint,
        )
    return _parse_rows(rows, "of {}" if run_id is None else "best of {}")


def _parse_rows(rows: Sequence[tuple[object, ...]], reason: str) -> tuple[PriorConfig, ...]:
    """Return rows of configurations as records; `reason` has a placeholder for their origin."""
    return tuple(
        PriorConfig(str(template), json.loads(str(params)), reason.format(origin), int(str(run_id)))
        for template, params, origin, run_id in rows
    )
