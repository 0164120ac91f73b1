"""From raw columns to predictions: the networks of templates learn from what recipes make."""

from __future__ import annotations

import pytest
from recipes import Session
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import Classes
from cerebro_plpy.configs.templates.networks.linear import LINEAR
from cerebro_plpy.configs.templates.networks.realmlp import REALMLP, SIMPLE
from cerebro_plpy.database.queries import escape_percent
from cerebro_plpy.preprocessing.learning.fit_recipe import fit_recipe
from cerebro_plpy.preprocessing.recipe.encoding import encode
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression

FIT_WORKERS = 1
COMPARED = (REALMLP, SIMPLE, LINEAR)
ROWS = 400
HOMES = """
    CREATE TABLE homes AS
    SELECT n AS id, a.area, (ARRAY['a', 'b', NULL])[n % 3 + 1] AS place,
           (coalesce(a.area, 0) > 1.05e6) = (n % 3 = 0) AS sold
    FROM generate_series(1, 400) AS n,
         LATERAL (SELECT CASE WHEN n % 10 > 0 THEN 1e6 + 1000 * (n * 7919 % 97) END) AS a (area)"""
COLUMNS = (
    RawColumn("area", "numeric", "numeric", False),
    RawColumn("place", "text", "text", False),
)


@pytest.mark.long
def test_templates_learn_from_raw_columns(bench: Workbench) -> None:
    """What no line divides, since a number counts one way or the other by the category beside it;
    but for `linear`.
    """
    bench.rows(HOMES)
    session = Session(bench)
    recipe = fit_recipe(
        session, Source("homes", Expression("true"), Expression("t.id::bigint << 32")), COLUMNS, {}
    )
    numbers, codes = encode(recipe)
    inputs = (
        f"CREATE TABLE inputs AS SELECT t.id, {numbers.text} AS numbers, {codes.text} AS codes, "
        "t.sold FROM homes t"
    )
    with bench.connection.cursor() as cursor:
        cursor.execute(escape_percent(inputs), [*numbers.values, *codes.values])
    bench.pack("homes_packed", 2, source="inputs", target="sold", inputs="numbers, codes")
    head = Classes(2)
    for template in COMPARED:
        params = template.params(head, ROWS, {"batch_size": 32})
        model = bench.model(template.architecture(recipe.table, head, params))
        compiled = template.compile_params(head, params, ["accuracy"])
        bench.configure(
            f"{template.name}_configs", [compiled], [template.fit_params(params)], model
        )
        bench.fit("homes_packed", template.name, f"{template.name}_configs", 20, seed=1)
    scores: dict[str, float] = dict(
        bench.rows(
            " UNION ALL ".join(
                f"SELECT '{template.name}', training_metrics_final FROM {template.name}_info"
                for template in COMPARED
            )
        )
    )
    assert scores["realmlp"] > 0.9 and scores["realmlp_simple"] > 0.9 > scores["linear"]
    bench.rows(
        "SELECT madlib_predict('realmlp', 'inputs', 'id', 'numbers, codes', 'guessed', mst_key => "
        "1)"
    )
    right = (
        "SELECT avg((g.class_value::boolean = h.sold)::integer) FROM guessed g JOIN homes h USING "
        "(id) WHERE g.rank = 1"
    )
    assert bench.value(right) > 0.9
