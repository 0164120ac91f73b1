"""Architectures that show which layer of a network gives the best features.

There is one architecture for each of some layers: the network up to that layer, frozen, and the
same head. They are written to an architecture table and trained like others, as one run. The
outputs of each layer are then computed once, and not in each epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cerebro_plpy import limits
from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.configs.architecture.model_shapes import Node
from cerebro_plpy.configs.architecture.probe_models import (
    Head,
    build_probe,
    draw_weights,
    freeze,
    pick_weights,
    to_json,
)
from cerebro_plpy.configs.params import frameworks
from cerebro_plpy.database.call_checks import check_positive, check_transaction
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import drive
from cerebro_plpy.database.sessions.spi import Database, Globals, Row
from cerebro_plpy.errors import FeatureNotSupported, InvalidParameter, NullNotAllowed
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.operations.predict.predict_byom import (
    describe_program,
    find_weights,
    read_weighted_architecture,
)
from cerebro_plpy.platform.call_context import CallContext, open_context
from cerebro_plpy.platform.job import Job
from cerebro_plpy.records import dataclass
from cerebro_plpy.run.workers.workers import open_scoring_workers
from cerebro_plpy.tables import architectures

MODULE = "explore_layers"


@dataclass(frozen=True)
class ProbeArguments:
    """The unchecked arguments of a call; None for NULL."""

    model_arch_table: str | None
    explored_model: int | None
    layers: Sequence[str | None] | None
    output: str | None
    outputs: int | None
    hidden: Sequence[int | None] | None
    activation: str | None
    seed: int | None


class ProbeRequest(NamedTuple):
    """The checked arguments of a call."""

    layers: list[str]
    head: Head
    seed: int  # of the weights of the head


def explore_layers(db: Database, gd: Globals, arguments: ProbeArguments) -> list[Row]:
    """Create the architecture table.

    Returns:
        A row for each architecture: its id, its layer, and the number of features of the head.
    """
    check_transaction(db, MODULE)
    request = _check_arguments(arguments)
    model_id = arguments.explored_model
    catalog = Catalog(db, MODULE)
    table = architectures.find_table(catalog, arguments.model_arch_table)
    output = catalog.reserve_output(arguments.output)
    with open_context(db, gd, [table], None) as context:
        prefixes = _describe_prefixes(context, table, model_id, request.layers)
    weights = db.row(sql("visit.weights_source", table=table.quoted), model_id)["chunk"]
    rows: list[Row] = []
    for number, prefix in enumerate(prefixes, 1):
        layer = prefix["layer"]
        shape = prefix["shape"]
        head_weights = draw_weights(shape[-1], request.head, request.seed, db.check_interrupts)
        network = build_probe(prefix["architecture"], f"until_{layer}", shape, request.head)
        prefix_weights = pick_weights(weights, prefix["weights"])
        architectures.load(
            catalog, output.quoted, to_json(network), prefix_weights + head_weights, layer, None
        )
        rows.append({"model_id": number, "layer": layer, "features": shape[-1]})
    return rows


def _check_arguments(arguments: ProbeArguments) -> ProbeRequest:
    limits.check_record(MODULE, arguments)
    hidden = arguments.hidden or ()
    limits.check("the number of hidden layers", len(hidden), limits.HIDDEN_LAYERS)
    layers = [name for name in arguments.layers or () if name is not None]
    if not layers or len(layers) < len(arguments.layers or ()):
        raise NullNotAllowed(
            f"{MODULE} error: layers is NULL, empty or has a NULL; expected the names of layers, "
            "such as ARRAY['pool_1', 'pool_2']."
        )
    if len(set(layers)) < len(layers):
        raise InvalidParameter(f"{MODULE} error: layers names one twice: {', '.join(layers)}.")
    outputs = _check_units("outputs", arguments.outputs)
    hidden_units = tuple(_check_units("hidden", units) for units in hidden)
    if arguments.activation is None or arguments.seed is None:
        raise NullNotAllowed(
            f"{MODULE} error: activation or seed is NULL; leave them out for 'softmax' and 1."
        )
    return ProbeRequest(layers, Head(hidden_units, outputs, arguments.activation), arguments.seed)


def _check_units(name: str, units: int | None) -> int:
    if units is None:
        raise NullNotAllowed(
            f"{MODULE} error: {name} is NULL; expected how many units the head has."
        )
    check_positive(MODULE, name, units)
    return units


def _describe_prefixes(
    context: CallContext, table: Relation, model_id: int | None, layers: Sequence[str]
) -> list[dict[str, Any]]:
    """Have a trainer describe the frozen prefix of the network that ends at each layer.

    Raises:
        InvalidParameter: a layer cannot be the end of a prefix.
    """
    loaded = read_weighted_architecture(MODULE, context, table, model_id)
    summary = check_architecture(loaded)
    if len(summary.input_shapes) != 1:
        raise FeatureNotSupported(
            f"{MODULE} error: model_id {model_id} has "
            f"{count_nouns(len(summary.input_shapes), 'input')}; expected one."
        )
    network: Node = loaded  # type: ignore[assignment]
    program = describe_program(freeze(network), summary)
    state = find_weights(table, model_id)
    worker_set = open_scoring_workers(context, frameworks.BACKENDS[0], False, (0,))
    worker = worker_set.workers[0]

    def inspect(job: Job) -> Any:
        return drive(worker.session, worker_set.visits.inspect(worker, state, job))

    cut_layers = [cut["layer"] for cut in inspect(Job("cuts", program, state.key))["cuts"]]
    if missing := [name for name in layers if name not in cut_layers]:
        raise InvalidParameter(
            f"{MODULE} error: nothing can be put on layers {', '.join(missing)} of model_id "
            f"{model_id}.",
            detail=f"Layers through whose one output all goes: {', '.join(cut_layers) or 'none'}.",
            hint="Name some of these. Layers with a state or with random numbers are not among "
            "them.",
        )
    return list(inspect(Job("fronts", program, state.key, layers=tuple(layers)))["fronts"])
