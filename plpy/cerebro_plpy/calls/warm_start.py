"""Warm start: configurations go on from the states in an existing model table, found by mst_key.

Known keys go on, with their optimizer's state where the optimizer is of the same class; new keys start
fresh; keys that the model selection table no longer has vanish from the output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.custom_functions import UNSEEN
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.database.dispatch import Session
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import CerebroError, InsufficientPrivilege, UndefinedTable, WrongObjectType
from cerebro_plpy.packing.packed_table import read_summary_row
from cerebro_plpy.run.request import FitRequest, WarmState

# MADlib's own output holds weights and no states of optimizers. The statement is one that Greenplum runs too, where a
# function is not called for the rows of a table.
FROM_WEIGHTS = (
    "To go on from the weights of a model of MADlib's: SELECT load_keras_model('your_models',"
    " (SELECT model_arch FROM {0} WHERE mst_key = ...), (SELECT model_weights FROM {0} WHERE mst_key = ...));"
    " then train that model_id without warm_start, into another table."
)


def existing_output(catalog: Catalog, given: str | None, suffixes: Sequence[str]) -> dict[str, Relation]:
    """The output tables by suffix, the first of which has none; they must exist and be the caller's to rewrite."""
    output = catalog.relation(given, "model output")
    found = {"": output}
    for suffix in suffixes:
        companion = catalog.companion(output, suffix)
        if companion is None:
            raise UndefinedTable(
                f"{catalog.module} error: table '{output.given}{suffix}' does not exist; warm_start goes on from the"
                " output tables of an earlier call.",
                hint=FROM_WEIGHTS.format(output.quoted)
                if suffix == "_state"
                else "Name the output of madlib_fit_multiple_model(), or leave warm_start out.",
            )
        found[suffix] = companion
    _check_rewritable(catalog, found.values())
    _refuse_code_of_others(catalog, list(found.values()))
    _check_kind(catalog, found)
    return found


def _check_rewritable(catalog: Catalog, tables: Iterable[Relation]) -> None:
    for relation in tables:
        if not catalog.db.value(sql("warm.may_rewrite"), relation.oid):
            raise InsufficientPrivilege(
                f"{catalog.module} error: permission denied to rewrite table '{relation.name}'.",
                hint="warm_start replaces the rows of the output tables: it takes SELECT, INSERT and DELETE on them.",
            )


def _check_kind(catalog: Catalog, found: Mapping[str, Relation]) -> None:
    """They are what the same function has made."""
    output = found[""].given
    if "_info" in found and "metrics_iters" in catalog.columns(found["_info"]):
        raise WrongObjectType(
            f"{catalog.module} error: '{output}' is the output of madlib_automl(), which warm_start cannot go on with.",
            hint="Load the best model's weights beside its architecture by load_keras_model(), and train from these.",
        )
    if {"mst_key", "part", "chunk"} - catalog.columns(found["_state"]).keys():
        raise WrongObjectType(f"{catalog.module} error: table '{output}_state' holds no states of models.")
    if "_info" not in found and "mst_key" in catalog.columns(found[""]):
        raise WrongObjectType(
            f"{catalog.module} error: '{output}' is not the output of this function, but of"
            " madlib_fit_multiple_model() or madlib_automl().",
            hint="Leave warm_start out, and name a table that does not exist.",
        )


def _refuse_code_of_others(catalog: Catalog, tables: Sequence[Relation]) -> None:
    for row in catalog.db.rows(sql("warm.foreign_code"), [relation.oid for relation in tables]):
        raise InsufficientPrivilege(
            f"{catalog.module} error: table '{row['name']}' is of another role, and has triggers, rules, defaults or"
            " checks: they would run with your privileges.",
            hint="SET ROLE to its owner before the call, or let the owner make it without them.",
        )


def warm_states(reader: Session, tables: Mapping[str, Relation], request: FitRequest) -> dict[int, WarmState]:
    """Where each configuration that was trained before goes on; those that failed then start fresh."""
    before = _trained(reader, tables)
    policy = read_summary_row(reader, tables["_summary"]).get("dtype_policy")
    states = {}
    for config in request.configs:
        if config.mst_key not in before:
            continue
        text = sql("warm.state", state=tables["_state"].quoted)
        architecture = request.architectures[config.model_id].json
        scaled = scales_loss(policy, architecture) == scales_loss(request.spec.dtype_policy, architecture)
        if scaled and same_optimizer(before[config.mst_key], config):
            states[config.mst_key] = WarmState("chunks", text, (config.mst_key,))
        else:
            states[config.mst_key] = WarmState("weights_of_chunks", text, (config.mst_key,))
    return states


def _trained(reader: Session, tables: Mapping[str, Relation]) -> dict[int, str]:
    """The compile parameters of the models that have states, by mst_key."""
    names = {name.strip("_"): relation.quoted for name, relation in tables.items()}
    text = (
        sql("warm.trained", info=names["info"], state=names["state"])
        if "info" in names
        else sql("warm.trained_single", summary=names["summary"], state=names["state"])
    )
    return dict(reader.run(text))


def scales_loss(policy: str | None, architecture: str) -> bool:
    """Whether a dtype policy, or without one the architecture's own, wraps optimizers in one that scales losses.

    >>> scales_loss("mixed_float16", "{}"), scales_loss("float32", '{"dtype": "mixed_float16"}')
    (True, False)
    """
    return policy == "mixed_float16" or (policy is None and '"mixed_float16"' in architecture)


def same_optimizer(compile_text: str, config: Config) -> bool:
    """Whether the optimizer's variables of then fit the optimizer of now."""
    try:
        return parse_compile_params(compile_text, UNSEEN).optimizer.class_name == config.compile.optimizer.class_name
    except CerebroError:
        return False
