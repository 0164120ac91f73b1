"""A version of a model in the trainer of the caller's session.

Predictions of tables and of single rows share this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Optional

from cerebro_plpy.configs.architecture.architecture import read_architecture
from cerebro_plpy.configs.architecture.boosted_trees import check_any_architecture, is_of_trees
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.templates.layers.model_io import Classes
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.preprocessing.kinds.feature import NetworkInput
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import raw_inputs
from cerebro_plpy.preprocessing.recipe.unknown_values import UnknownValues, find_unknown_values
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values
from cerebro_plpy.tables.models import granted_versions, model_versions
from cerebro_plpy.tables.models.granted_versions import GrantedVersion, UsableVersion
from cerebro_plpy.tables.models.model_versions import Member, Version
from cerebro_plpy.trainer_client import (
    privileged_requests,
    request_schema,
    segment_functions,
    settings,
)
from cerebro_plpy.trainer_client.predictor import Predictor, PredictorSpec
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.request_schema import Header
from cerebro_plpy.trainer_client.settings import TrainerOptions

COMPILE_PARAMS = "optimizer='SGD()',loss='mean_squared_error'"
"""Predictions do not depend on the optimizer; SGD is used because it has no slot variables."""
GROUP_COLUMN = "cerebro_group"
UNKNOWN_COLUMN = "cerebro_unknown"
"""Names of a row's group, and of its values that the model does not know, in statements."""
UNKNOWN_LABEL = ""
"""Takes the place of a column's name for targets that the model does not know."""
FindGroupVersion = Callable[[str], Optional[UsableVersion]]
"""Return the model of the rows of a group by the text of the group's value, or None."""
CACHED_GROUPS = 1000
"""Groups of a granted version whose models are remembered without another query."""
INTEGER_LIMITS = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}
"""Smallest number that is too large for an integer type."""


def make_row_predictor(db: Database, gd: Globals, version: UsableVersion) -> Predictor:
    """Return a client that predicts rows with a version, in the trainer of the caller's session."""
    fields = {"arrays": describe_arrays(version), **_describe_prediction(db, version)}
    return make_predictor(db, gd, version, request_schema.build_request("tell", fields))


def describe_arrays(version: UsableVersion) -> list[dict[str, object]]:
    """Describe how the inputs of the network are sent."""
    return [network_input.entry for network_input in list_inputs(version, version.recipe)]


def make_predictor(
    db: Database,
    gd: Globals,
    version: UsableVersion,
    header: Header,
    trainer: TrainerSpec | None = None,
    send_data: Callable[[], None] = lambda: None,
) -> Predictor:
    """Return a client for a version in the trainer of the caller's session.

    The trainer is started and filled when the first request is sent.

    Args:
        header: header of each request but for its rows.
        trainer: options to start the trainer; None for the usual way for a single session.
        send_data: sends more data that the trainer needs, after the weights.
    """
    options = settings.read(db)
    settings.check_trainer(options)
    if trainer is None:
        trainer = settings.trainer_spec(options, TrainerOptions(framework=version.backend))
    requests = PredictorSpec(
        spec=trainer,
        idle_seconds=options.trainer_idle_seconds,
        header=header,
        begin=_make_filler(db, gd, version, send_data),
    )
    return Predictor(gd, requests, db.check_interrupts)


def list_inputs(version: UsableVersion, recipe: Recipe) -> tuple[NetworkInput, ...]:
    """Return what a trainer receives of each row.

    Args:
        recipe: the recipe of the version, as it fits the columns of the rows.
    """
    if isinstance(version, GrantedVersion):
        return raw_inputs(recipe)
    return network_inputs(recipe)


def select_expressions(expressions: Mapping[str, Expression]) -> Expression:
    """Return a SELECT list of expressions under these names."""
    texts = [f"{expression.text} AS {name}" for name, expression in expressions.items()]
    return Expression(", ".join(texts), combined_values(expressions.values()))


def find_group_versions(
    db: Database, gd: Globals, module: str, version: UsableVersion
) -> tuple[FindGroupVersion, Sequence[str] | None]:
    """Return a function that finds the model of a group, and the texts of all groups with a model.

    The texts are None for a granted version: only its owner may know them.
    """
    if isinstance(version, GrantedVersion):
        find = partial(granted_versions.find_group_version, db, gd, version)
        return lru_cache(CACHED_GROUPS)(find), None
    versions = model_versions.read_group_versions(db, module, version)
    return versions.get, list(versions)


def find_unknown(
    version: UsableVersion, recipe: Recipe, unknown_label: Expression | None
) -> UnknownValues:
    """Return the counts of values that the model does not know, of rows that are not read yet.

    The values of a granted model are known to its owner only.
    """
    expressions: dict[str, Expression] = {}
    if not isinstance(version, GrantedVersion):
        expressions = find_unknown_values(recipe)
    if unknown_label is not None:
        expressions[UNKNOWN_LABEL] = unknown_label
    return UnknownValues(expressions)


def report_unknown(db: Database, version: UsableVersion, unknown: UnknownValues) -> None:
    """Send a NOTICE for each column with values that the model does not know."""
    for name, values in unknown.describe():
        if name == UNKNOWN_LABEL and not version.classes:
            db.notice(
                f"the target has {values}, which model {version.model!r} cannot read as numbers"
            )
        elif name == UNKNOWN_LABEL:
            db.notice(
                f"the target has {values}, which model {version.model!r} has no class for: every "
                "prediction of these rows counts as wrong"
            )
        else:
            db.notice(
                f"column {name} has {values}, which model {version.model!r} does not know: they "
                "count as missing"
            )


def _make_filler(
    db: Database, gd: Globals, version: UsableVersion, send_data: Callable[[], None]
) -> Callable[[], None]:
    """Return a function that begins the job in the session's trainer and sends the weights."""
    if isinstance(version, GrantedVersion):
        return partial(granted_versions.fill_trainer, db, gd, version)
    jobs = [privileged_requests.add_sources(db, job) for job in make_jobs(version)]
    members = [
        (
            request_schema.build_request("begin", job, sealed=False),
            db.platform.state_rows_sql(member.state_table, None),
        )
        for member, job in zip(version.members, jobs)
    ]

    def fill() -> None:
        for begin, rows in members:
            segment_functions.get_trainer(gd).call(begin)
            for row in db.stream(rows):
                segment_functions.add_state(gd, row["part"], row["chunk"])
        segment_functions.get_trainer(gd)  # send the last chunks
        send_data()

    return fill


def make_jobs(version: Version) -> list[JsonObject]:
    """Describe the job of a trainer that predicts with a version, by a request for each member.

    Raises:
        DataCorrupted: the outputs of a member do not match the classes of the version.
    """
    jobs: list[JsonObject] = []
    for member in version.members:
        job = _describe_member(version, member)
        if jobs:
            job["beside"] = True
        jobs.append(job)
    return jobs


def _describe_member(version: Version, member: Member) -> JsonObject:
    architecture = read_architecture(member.architecture)
    units = check_any_architecture(architecture).output_units
    expected = len(version.classes) or 1
    if units != (expected,):
        raise DataCorrupted(
            f"version {version.version} of model {version.model!r} is damaged: its network has "
            f"outputs of {', '.join(map(str, units))} units; expected one of {expected}",
            hint="Train the model again.",
        )
    job: JsonObject = {
        "job": "predict",
        "program": describe_program(architecture, COMPILE_PARAMS, version.classes),
        "state": {"source": "weights_of_chunks", "key": "", "seed": 0},
        "result_key": member.state_table,
    }
    if len(version.members) > 1 or member.share != 1:
        job["share"] = member.share
    if version.recipe.target_scale is not None:
        job["scale"] = version.recipe.target_scale.to_json()
    if version.calibration.corrects_classes:
        job["calibration"] = version.calibration.describe(version.classes)
    return job


def describe_program(
    architecture: object, compile_params: str, classes: Sequence[str]
) -> JsonObject:
    """Describe the program of a network for a trainer.

    Args:
        compile_params: those of a run; or others, as predictions do not depend on them.
        classes: classes of the target; empty if the network predicts a number.
    """
    compiled = parse_compile_params(compile_params).to_json()
    if classes and is_of_trees(architecture):
        compiled["loss"] = Classes.loss  # it decides how trees turn scores into outputs
    return {
        "architecture": architecture,
        "compile": compiled,
        "targets": [request_schema.describe_target(len(classes))],
        "dtype_policy": None,
    }


def _describe_prediction(db: Database, version: UsableVersion) -> dict[str, object]:
    """Return the request's fields about the target: its classes, or the range of its integers."""
    if version.classes:
        return {"labels": list(version.classes)}
    if isinstance(version, GrantedVersion):
        base = version.base
    else:
        base = model_versions.find_target_base(LocalSession(db), version)
    if base not in INTEGER_LIMITS:
        return {}
    limit = INTEGER_LIMITS[base]
    return {"whole": [-limit, limit - 1]}


def split_answer(version: UsableVersion, answer: list[bytes]) -> tuple[bytes | None, ...]:
    """Return prediction, probability, probabilities and number of a block, as arrays in text.

    A value that the task does not have is None.

    >>> from types import SimpleNamespace
    >>> split_answer(SimpleNamespace(classes=()), [b"{2}", b"{1.9}"])
    (b'{2}', None, None, b'{1.9}')
    """
    if version.classes:
        return (*answer, None)
    return (answer[0], None, None, answer[1])
