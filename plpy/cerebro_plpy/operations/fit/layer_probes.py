"""Which layer of a network gives the best features: an architecture for each of some layers, with
the same head.

They go into an architecture table, from which they are trained as any others are, as one run: what
the layers give is then computed once for each, and not in each epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cerebro_plpy import limits
from cerebro_plpy.configs.architecture import probe_models
from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.configs.architecture.model_shapes import Node
from cerebro_plpy.configs.architecture.probe_models import Head
from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.database.call_checks import check_positive, check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import drive
from cerebro_plpy.database.sessions.spi import Database, Row
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter, NullNotAllowed
from cerebro_plpy.operations.predict.predict_byom import (
    describe_program,
    find_weights,
    read_weighted_architecture,
)
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.job import Job
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.workers.workers import crew_for
from cerebro_plpy.tables import architectures

MODULE = "explore_layers"


@dataclass(frozen=True)
class ProbeArguments:
    """The arguments of a call as they came, None for NULL."""

    model_arch_table: str | None
    explored_model: int | None
    layers: Sequence[str | None] | None
    output_table: str | None
    outputs: int | None
    hidden: Sequence[int | None] | None
    activation: str | None
    seed: int | None


def explore_layers(db: Database, gd: dict[str, Any], asked: ProbeArguments) -> list[Row]:
    """Make the architecture table; of each architecture its id, its layer, and how many numbers the
    head sees.
    """
    check_transaction(db, MODULE)
    layers, head, seed = _checked(asked)
    catalog = Catalog(db, MODULE)
    table = architectures.find_table(catalog, asked.model_arch_table)
    output = catalog.reserve_output(asked.output_table)
    with open_context(db, gd, [table], None) as workplace:
        fronts = _fronts(workplace, table, asked.explored_model, layers)
    flat = db.row(sql("visit.weights_source", table=table.quoted), asked.explored_model)["chunk"]
    rows: list[Row] = []
    for number, found in enumerate(fronts, 1):
        width = found["shape"][-1]
        name = f"until_{found['layer']}"
        fresh = probe_models.draw_weights(width, head, seed, db.check_interrupts)
        made = probe_models.to_json(
            probe_models.build_probe(found["architecture"], name, found["shape"], head)
        )
        kept = probe_models.pick_weights(flat, found["weights"]) + fresh
        architectures.load(catalog, output.quoted, made, kept, found["layer"], None)
        rows.append({"model_id": number, "layer": found["layer"], "features": width})
    return rows


def _checked(asked: ProbeArguments) -> tuple[list[str], Head, int]:
    """The layers, the head, and the seed of its weights."""
    limits.check_record(MODULE, asked)
    limits.check("the number of hidden layers", len(asked.hidden or ()), limits.HIDDEN_LAYERS)
    names = [name for name in asked.layers or () if name is not None]
    if not names or len(names) < len(asked.layers or ()):
        raise NullNotAllowed(
            f"{MODULE} error: layers is NULL, empty or has a NULL; expected the names of layers, "
            "such as ARRAY['pool_1', 'pool_2']."
        )
    if len(set(names)) < len(names):
        raise InvalidParameter(f"{MODULE} error: layers names one twice: {', '.join(names)}.")
    for name, number in (
        ("outputs", asked.outputs),
        *(("hidden", units) for units in asked.hidden or ()),
    ):
        if number is None:
            raise NullNotAllowed(
                f"{MODULE} error: {name} is NULL; expected how many units the head has."
            )
        check_positive(MODULE, name, number)
    if asked.activation is None or asked.seed is None:
        raise NullNotAllowed(
            f"{MODULE} error: activation or seed is NULL; leave them out for 'softmax' and 1."
        )
    hidden = tuple(units for units in asked.hidden or () if units is not None)
    assert asked.outputs is not None
    return names, Head(hidden, asked.outputs, asked.activation), asked.seed


def _fronts(
    workplace: CallContext, table: Relation, model_id: int | None, names: Sequence[str]
) -> list[dict[str, Any]]:
    """What leads to these layers, as a trainer tells."""
    loaded = read_weighted_architecture(MODULE, workplace, table, model_id)
    summary = check_architecture(loaded)
    if len(summary.input_shapes) != 1:
        raise FeatureNotSupported(
            f"{MODULE} error: model_id {model_id} has {len(summary.input_shapes)} inputs; expected "
            "one."
        )
    network: Node = loaded  # type: ignore[assignment]
    program = describe_program(probe_models.freeze(network), summary)
    crew = crew_for(workplace, frameworks.BACKENDS[0], False, (0,))
    state, worker = find_weights(table, model_id), crew.workers[0]
    told = drive(
        worker.session, crew.visits.inspect(worker, state, Job("cuts", program, state.key))
    )
    known = [cut["layer"] for cut in told["cuts"]]
    if missing := [name for name in names if name not in known]:
        raise InvalidParameter(
            f"{MODULE} error: nothing can be put on layers {', '.join(missing)} of model_id "
            f"{model_id}.",
            detail=f"Layers through whose one output all goes: {', '.join(known) or 'none'}.",
            hint="Name some of these; layers whose state or whose random numbers decide what they "
            "give are none.",
        )
    job = Job("fronts", program, state.key, layers=tuple(names))
    return list(drive(worker.session, crew.visits.inspect(worker, state, job))["fronts"])
