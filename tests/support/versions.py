"""Models by name in tests: a table that a small network was trained on, and the rows that make a
version of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg2.extras import Json
from recipes import Session
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Classes, Floats, Head, Measure
from cerebro_plpy.configs.templates.registry import find_template
from cerebro_plpy.database.queries import escape_percent
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import read_columns
from cerebro_plpy.preprocessing.values.expression import Expression

WHOLE_TABLE = Expression("true")
HASHED = Expression("pg_catalog.hashtext(t::text)::bigint << 32")


@dataclass(frozen=True)
class BatchResult:
    """A version, and the tables that it was made of; `packed` has what the recipe makes of each
    row.
    """

    model: str
    recipe: Recipe
    inputs: str
    output: str
    names: str


def encoded_table(bench: Workbench, name: str, recipe: Recipe, source: str, *others: str) -> str:
    """Make a table of what the recipe makes of all rows, with other columns beside; the names of
    the inputs.
    """
    wanted = {each.name: each.value for each in network_inputs(recipe)}
    text = ", ".join(
        [
            *(f"{e.text} AS {column}" for column, e in wanted.items()),
            *(f"t.{other}" for other in others),
        ]
    )
    with bench.connection.cursor() as cursor:
        values = [value for expression in wanted.values() for value in expression.values]
        cursor.execute(
            escape_percent(f"CREATE TABLE {name} AS SELECT {text} FROM {source} t"), values
        )
    return ", ".join(wanted)


def trained(
    bench: Workbench,
    model: str,
    source: str,
    target: str,
    *,
    template: str = "realmlp",
    epochs: int = 2,
    margin: float | None = None,
    floats: Measure | None = None,
    types: Mapping[str, str] | None = None,
    params: Mapping[str, object] | None = None,
    row_id: str = "id",
) -> BatchResult:
    """Train on a table, and deploy what comes of it under a name; `floats` makes it a
    regression.
    """
    oid = bench.value("SELECT %s::regclass::oid", source)
    session = Session(bench)
    columns = [each for each in read_columns(session, oid) if each.name not in (target, row_id)]
    recipe = fit_recipe(session, Source(source, WHOLE_TABLE, HASHED), columns, types or {})
    number = bench.value("SELECT count(*) FROM cerebro.run_log") + 1
    base = f"made_{number}"
    names = encoded_table(bench, f"{base}_inputs", recipe, source, row_id, target)
    values = (
        ()
        if floats
        else tuple(
            v for (v,) in bench.rows(f"SELECT DISTINCT {target}::text FROM {source} ORDER BY 1")
        )
    )
    head: Head = Floats((floats,)) if floats else Classes(len(values))
    kind = "float" if floats else None
    packed = bench.pack(
        f"{base}_packed",
        1,
        source=f"{base}_inputs",
        target=target,
        inputs=names,
        kind=kind,
        buffer=10_000,
    )
    family = find_template(template)
    rows = bench.value(f"SELECT count(*) FROM {source}")
    chosen = family.params(head, rows, {"batch_size": 64, **(params or {})})
    architecture = family.architecture(recipe.table, head, chosen)
    model_id = bench.model(architecture)
    compiled = family.compile_params(head, chosen, [] if floats else ["accuracy"])
    bench.configure(f"{base}_configs", [compiled], [family.fit_params(chosen)], model_id)
    run_id = bench.fit(packed, base, f"{base}_configs", epochs, seed=1)
    copy_state(bench, base, run_id)
    deploy(
        bench, model, 1, run_id=run_id, source=source, target=target, recipe=recipe, classes=values,
        architecture=architecture, compiled=compiled, margin=margin, template=template,
    )  # fmt: skip
    return BatchResult(model, recipe, f"{base}_inputs", base, names)


def copy_state(bench: Workbench, output: str, run_id: int, mst_key: int = 1) -> None:
    """Keep the state of a model of an output table as that of a version."""
    table = f'cerebro_state."r{run_id}_m{mst_key}"'
    bench.rows(
        f"CREATE TABLE {table} (part integer NOT NULL, chunk bytea NOT NULL); ALTER TABLE {table} "
        f"ALTER chunk SET STORAGE EXTERNAL; INSERT INTO {table} SELECT part, chunk FROM "
        f"{bench.states(output)} WHERE mst_key = {mst_key} ORDER BY part"
    )


def deploy(
    bench: Workbench,
    model: str,
    version: int,
    *,
    run_id: int,
    source: str,
    target: str,
    recipe: Recipe,
    classes: Sequence[str],
    architecture: str,
    compiled: str,
    margin: float | None,
    template: str,
    share: float = 1.0,
    mst_key: int = 1,
) -> None:
    """Log a version, and let it predict; with a smaller share, others are to be added."""
    bench.rows(
        "INSERT INTO cerebro.model_log (model, split, split_seed) VALUES (%s, 'random 0.2', 1) ON "
        "CONFLICT DO NOTHING",
        model,
    )
    target_type = bench.value(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass "
        "AND attname = %s",
        source,
        target,
    )
    row: dict[str, Any] = {
        "model": model,
        "version": version,
        "run_id": run_id,
        "mst_key": mst_key,
        "task": "classification" if classes else "regression",
        "source": bench.value(
            "SELECT format('%%I.%%I', relnamespace::regnamespace, relname) FROM pg_class WHERE "
            "oid = %s::regclass",
            source,
        ),
        "target": target,
        "target_type": target_type,
        "template": template,
        "params": Json({}),
        "metric": "loss",
        "training_rows": 1,
        "validation_rows": 1,
        "seed": 1,
        "recipe": Json(recipe.to_json()),
        "classes": list(classes),
        "margin": margin,
        "backend": "tensorflow",
        "state_bytes": 1,
        "software": Json({}),
        "importance": [0.5] * len(recipe.features),
        "importance_error": [0.25] * len(recipe.features),
    }
    insert(bench, "version_log", row)
    shared = ("model", "version", "run_id", "mst_key", "template", "params", "backend")
    member = {
        **{name: row[name] for name in (*shared, "state_bytes")},
        "group_value": "",
        "position": 1,
        "share": share,
        "architecture": architecture,
        "compile_params": compiled,
    }
    insert(bench, "member_log", member)
    bench.rows(
        "UPDATE cerebro.model_log SET deployed = %s, deployed_at = now() WHERE model = %s",
        version,
        model,
    )


def insert(bench: Workbench, table: str, row: Mapping[str, object]) -> None:
    """Add a row to a table of the log."""
    places = ", ".join(["%s"] * len(row))
    bench.rows(f"INSERT INTO cerebro.{table} ({', '.join(row)}) VALUES ({places})", *row.values())
