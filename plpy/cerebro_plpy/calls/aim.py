"""What a call of `cerebro.train` or `cerebro.plan` is to come to, as far as its arguments say it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cerebro_plpy.calls.train_arguments import TrainArguments, Wanted
from cerebro_plpy.configs.templates.effort import Effort, Workload, effort, usual_weights
from cerebro_plpy.configs.templates.proposals import Proposal, proposals
from cerebro_plpy.configs.templates.template import Classes
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.dispatch import Session
from cerebro_plpy.database.platform import Platform
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.features.split import read_split
from cerebro_plpy.features.table import RawTable, Wishes
from cerebro_plpy.run.request import Deadline
from cerebro_plpy.tables import registry

CALIBRATED = ("log_loss", "auc")
"""Metrics to which labels that are smoothed in training do harm."""
AFTERWARDS, AFTERWARDS_SHARE = 4.0, 0.02
"""What comes after training takes so many seconds, for a trainer may have to start, and so much of the budget more."""
MOST_AFTERWARDS = 0.4
"""Of a budget that is too short for that."""
ENDING_SHARE = 0.06
"""Of the budget: in it no visit to train begins, and those under way may end, and be evaluated."""


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
    left = deadline(aim.wanted.budget, aim.wanted.budget - seconds).last_visit
    return effort(load, left, aim.arguments.epochs, aim.arguments.configs)


def deadline(budget: float, spent: float) -> Deadline:
    """When a run ends at last that begins after so much of its budget was spent.

    >>> deadline(300.0, 20.0), deadline(5.0, 1.0)
    (Deadline(last_visit=252.0, cancel=270.0), Deadline(last_visit=1.7, cancel=2.0))
    """
    afterwards = min(AFTERWARDS + AFTERWARDS_SHARE * budget, MOST_AFTERWARDS * budget)
    moments = (budget * (1 - ENDING_SHARE) - afterwards, budget - afterwards)
    return Deadline(*(max(0.0, round(moment - spent, 3)) for moment in moments))


def asked(aim: Aim, table: RawTable) -> Iterator[Proposal]:
    """The configurations that are tried, in their order."""
    head = table.target.head
    if isinstance(head, Classes) and aim.arguments.metric in CALIBRATED:
        head = replace(head, calibrated=True)
    return proposals(aim.wanted.templates, head, table.rows, aim.wanted.space, aim.seed)
