"""Configurations that did well before, which train tries early: those that a call names, and those
of like tables.

A search that learns is told of all of their runs: see `earlier_runs`.
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
    """The best configurations of runs, and those of models' versions that predict.

    Raises UndefinedObject where there is no such run or model, or none of its configurations is of
    a template.
    """
    check_flat(module, "start_from", names)
    return tuple(each for name in names or () for each in _named(module, session, name))


def read_similar_configs(
    session: Session, arguments: TrainArguments, table: RawTable
) -> tuple[PriorConfig, ...]:
    """Those of the caller's newest versions that predict such a target from columns of the same
    names.

    None where a seed is to repeat what came of it before.
    """
    if arguments.search == RANDOM or arguments.seed is not None:
        return ()
    columns = sorted(feature.column for feature in table.recipe.features)
    values = (table.target.column.name, table.target.task, columns, BEST_PER_RUN)
    return _read(session.run(sql("version.like"), values), "of {}")


def _named(module: str, session: Session, name: str | None) -> tuple[PriorConfig, ...]:
    hint = (
        "SELECT * FROM cerebro.model; or SELECT run_id, name FROM cerebro.run WHERE spec ? 'train';"
    )
    if name is None:
        raise NullNotAllowed(
            f"{module} error: start_from has a NULL; expected names of models, or 'run:12'.",
            hint=hint,
        )
    run = parse_run_name(name)
    if run is not None:
        rows = session.run(sql("version.best_of_run"), (run, BEST_PER_RUN))
    else:
        rows = session.run(sql("version.like_model"), (name,))
    if not rows:
        known = [] if run is not None else [row[0] for row in session.run(sql("version.names"))]
        what = "model" if run is None else "run of cerebro.train"
        raise UndefinedObject(
            f"{module} error: start_from names {name!r}, but there is no such {what} of yours, or "
            "nothing came of it.",
            hint=near_matches(name, known) if known else hint,
        )
    return _read(rows, "of {}" if run is None else "best of {}")


def _read(rows: Sequence[tuple[object, ...]], words: str) -> tuple[PriorConfig, ...]:
    return tuple(
        PriorConfig(str(template), json.loads(str(params)), words.format(origin), int(str(run_id)))
        for template, params, origin, run_id in rows
    )
