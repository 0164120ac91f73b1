"""What a call of `cerebro.train` or `cerebro.plan` is to come to, as far as its arguments say it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from cerebro_plpy.calls.train_arguments import TrainArguments, Wanted
from cerebro_plpy.configs.templates.effort import Effort, Workload, effort, usual_weights
from cerebro_plpy.configs.templates.proposals import Proposal, proposals
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.dispatch import Session
from cerebro_plpy.database.platform import Platform
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.features.split import read_split
from cerebro_plpy.features.table import RawTable, Wishes
from cerebro_plpy.run.request import Deadline
from cerebro_plpy.tables import registry

LAST_VISIT, CANCEL = 0.9, 0.97
"""When a budget is over for visits to train, and for all that is under way; the rest is for what comes afterwards."""


@dataclass(frozen=True)
class Aim:
    """The table, the name of the model, and how rows are divided."""

    arguments: TrainArguments
    wanted: Wanted
    source: Relation
    model: str
    wishes: Wishes
    seed: int


def aim_of(module: str, session: Session, arguments: TrainArguments, source: Relation, wanted: Wanted) -> Aim:
    """What a call is to come to; a name that has versions divides rows as it did for them."""
    model = arguments.model or f"{source.name}_{wanted.target}"
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    known = registry.find_name(session, model)
    if known and arguments.split is not None and str(read_split(module, arguments.split)) != known.split:
        raise InvalidParameter(
            f"{module} error: split is {arguments.split!r}, but the rows of model {model!r} are divided by"
            f" {known.split!r}: its versions are compared on rows that none of them was trained on.",
            hint="Leave split out, or give the model another name.",
        )
    split, split_seed = (known.split, known.split_seed) if known else (arguments.split, seed)
    wishes = Wishes(wanted.target, arguments.task, arguments.columns, wanted.types, split, split_seed, bool(known))
    return Aim(arguments, wanted, source, model, wishes, seed)


def workload(aim: Aim, platform: Platform, table: RawTable, segments: int) -> Workload:
    """What an epoch goes over."""
    workers = min(aim.arguments.workers or platform.most_workers(segments), segments)
    weights = usual_weights(table.recipe.table, table.target.head)
    return Workload(table.rows, table.validation_rows, weights, segments, workers)


def planned_effort(aim: Aim, table: RawTable, load: Workload, seconds: float) -> Effort:
    """How many configurations are tried, and for how long, where so many seconds are left."""
    return effort(load, seconds * LAST_VISIT, aim.arguments.epochs, aim.arguments.configs)


def deadline(budget: float, spent: float) -> Deadline:
    """When a run ends at last that begins after so much of its budget was spent.

    >>> deadline(100.0, 20.0)
    Deadline(last_visit=70.0, cancel=77.0)
    """
    return Deadline(*(max(0.0, round(budget * share - spent, 3)) for share in (LAST_VISIT, CANCEL)))


def asked(aim: Aim, table: RawTable) -> Iterator[Proposal]:
    """The configurations that are tried, in their order."""
    return proposals(aim.wanted.templates, table.target.head, table.rows, aim.wanted.space, aim.seed)
