"""Whether architectures, packed tables and configurations fit each other, told before training starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cerebro_plpy.architecture import Architecture, check_architecture, read_architecture
from cerebro_plpy.catalog import Catalog
from cerebro_plpy.errors import DatatypeMismatch, FeatureNotSupported, InvalidParameter, UndefinedObject
from cerebro_plpy.params import CompileParams
from cerebro_plpy.records import Config, PackedTable, Relation, StoredModel

Shape = tuple[int, ...]


def check_configs(
    catalog: Catalog,
    configs: Sequence[Config],
    architectures: Mapping[int, StoredModel],
    source: PackedTable,
    table: Relation,
) -> None:
    """Every configuration's architecture exists and fits the packed table."""
    if len(source.independent) != 1 or len(source.dependent) != 1:
        raise FeatureNotSupported(
            "Multiple dependent and independent variables not supported for madlib_keras_fit_multiple_model!",
            detail=f"Table '{source.relation.given}' has {len(source.independent)} inputs and"
            f" {len(source.dependent)} targets.",
        )
    for config in configs:
        if config.model_id not in architectures:
            raise UndefinedObject(
                f"no model arch found in table {table.given} with id {config.model_id}",
                detail=f"mst_key {config.mst_key} names it.",
            )
    summaries = {}
    for architecture in architectures.values():
        summary = check_architecture(read_architecture(architecture.json))
        name = f"model_id {architecture.model_id}"
        check_input(name, summary, source.input_shapes[0], (source.independent[0], source.relation.given))
        summaries[architecture.model_id] = summary
    for config in configs:
        summary = summaries[config.model_id]
        check_output(f"model_id {config.model_id}", summary, source, config.compile)
        check_class_weight(config, summary, source)


def check_input(name: str, summary: Architecture, given: Shape, place: tuple[str, str]) -> None:
    """A model's input shape against that of the rows of a column; `place` names column and table."""
    wanted = summary.input_shapes[0]
    if len(summary.input_shapes) != 1 or not same_shape(wanted, given):
        raise DatatypeMismatch(
            f"model_keras error: Input shape {list(wanted)} in the model architecture does not match the input shape"
            f" {list(given)} of column {place[0]} in table {place[1]}.",
            detail=f"{name} has {len(summary.input_shapes)} inputs."
            if len(summary.input_shapes) != 1
            else f"It is {name}.",
            hint="Give the first layer the shape of the rows, or reshape the column.",
        )


def check_output(name: str, summary: Architecture, source: PackedTable, compiled: CompileParams) -> None:
    """The width of a model's output against that of the packed target; numbers of classes may have any width."""
    units, width = (summary.output_units or (None,))[0], source.target_shapes[0][-1]
    if source.float_targets[0] and compiled.wants_indices:
        return
    binary = units == 1 and width == 2 and not source.float_targets[0]
    if units is not None and units != width and not binary:
        raise DatatypeMismatch(
            f"model_keras error: the model with {name} ends in {units} units, but column"
            f" {source.dependent[0]} of table {source.relation.given} has {width} values a row.",
            hint="Give the last layer as many units as there are classes (or target values).",
        )


def check_class_weight(config: Config, summary: Architecture, source: PackedTable) -> None:
    """The classes that are given weights against those that the targets have."""
    if config.fit.class_weight is None:
        return
    shape, table = source.target_shapes[0], source.relation.given
    if len(shape) > 1:
        raise FeatureNotSupported(
            f"class_weight of mst_key {config.mst_key} needs one class per row, but column {source.dependent[0]} of"
            f" table {table} has rows of shape {list(shape)}.",
        )
    numbers = shape[0] == 1 and source.class_values[0] is None
    classes = (summary.output_units[0] if config.compile.wants_indices else None) if numbers else shape[0]
    largest = config.fit.class_weight[-1][0]
    if classes is not None and largest >= classes:
        names = source.class_values[0]
        raise InvalidParameter(
            f"class_weight of mst_key {config.mst_key} names class {largest}, but column {source.dependent[0]} of table"
            f" {table} has {classes} classes.",
            detail=f"Numbered from 0 they are: {', '.join(map(str, names[:100]))}." if names else None,
            hint=f"Give weights for classes 0 to {classes - 1}; those left out have weight 1.",
        )


def notices(config: Config, source: PackedTable) -> Iterator[str]:
    """What the caller should know of a configuration's parameters."""
    yield from (*config.compile.notices, *config.fit.notices)
    if config.fit.callbacks and config.fit.callbacks.ignored:
        yield (
            f"TensorBoard is given {', '.join(config.fit.callbacks.ignored)}, without effect: scalars are written for"
            " each visit and each evaluation"
        )
    rows = -(-source.rows // len(source.segments))
    buffer = max(1, min(source.buffer_size, rows))
    batches = -(-rows // buffer) * -(-buffer // config.fit.batch_size)
    if config.fit.steps_per_epoch is not None and config.fit.steps_per_epoch > batches:
        yield (
            f"steps_per_epoch={config.fit.steps_per_epoch}, but a segment has about {batches} batches; a pass ends with"
            " them"
        )


def same_shape(wanted: Sequence[int | None], given: Shape) -> bool:
    """Whether rows of a shape can enter a layer that wants another, in which None stands for any length.

    >>> same_shape((None, 3), (7, 3)), same_shape((4,), (5,))
    (True, False)
    """
    return len(wanted) == len(given) and all(w is None or w == g for w, g in zip(wanted, given))


def check_validation(catalog: Catalog, source: PackedTable, other: PackedTable) -> None:
    """A validation or test table is packed as the training table was."""
    if (source.input_shapes, source.target_shapes) != (other.input_shapes, other.target_shapes):
        raise DatatypeMismatch(
            f"{catalog.module} error: rows of table '{other.relation.given}' have shapes {other.input_shapes} and"
            f" {other.target_shapes}; expected {source.input_shapes} and {source.target_shapes} as in"
            f" '{source.relation.given}'.",
            hint="Pack it with validation_preprocessor_dl() against the training table.",
        )
    if not set(other.segments) <= set(source.segments):
        raise InvalidParameter(
            f"{catalog.module} error: table '{other.relation.given}' has {len(other.segments)} segments, not those of"
            f" '{source.relation.given}'.",
            detail=f"{list(other.segments)} against {list(source.segments)}.",
            hint="Pack it with validation_preprocessor_dl() against the training table.",
        )
    if source.class_values != other.class_values:
        raise InvalidParameter(
            f"{catalog.module} error: table '{other.relation.given}' has other classes than '{source.relation.given}'.",
            detail=f"{other.class_values} against {source.class_values}.",
            hint="Pack it with validation_preprocessor_dl() against the training table.",
        )
