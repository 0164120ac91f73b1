"""A hint that names a call, an argument, a value or a cast can be followed to the letter.

Each case is a call that fails. What its hint says is found in the hint's own text, and done.
"""

from __future__ import annotations

import json
import re

import pytest
from followed_hints import Call, error_of, follow, read_hint, read_statements, read_ways
from hint_texts import OF_PLANS, OF_RUN, list_queries, matches
from roles import another_role
from workbench import Workbench

PRODUCTS = """
    CREATE TABLE products AS
    SELECT n AS id, n % 80 AS "Age", n % 3 + 1 AS "Pclass", n % 9 * 1.5 AS "Fare.Paid",
           n % 7 AS lot, (n * 37 % 100)::real AS width, n % 2 = 0 AS sold,
           CASE WHEN n % 50 = 0 THEN '<1000' ELSE (1000.5 + n * 37 % 211)::text END AS price,
           'no. ' || n AS serial, NULL::integer AS nothing, 1 AS one,
           ARRAY['new', CASE n % 4 WHEN 0 THEN 'sale' ELSE 'eco' END] AS tags,
           int4range(n % 10, n % 10 + 5) AS ages, ARRAY[n % 2 = 0, n % 3 = 0] AS flags,
           ('<a>' || n % 3 || '</a>')::xml AS doc, point(n % 5, n % 7) AS place,
           ARRAY[sin(n), cos(n)] AS "both", date '2020-01-01' + n % 400 AS day,
           CASE WHEN n % 4 = 0 THEN 'V' ELSE 'T' END AS letters, n % 4 > 0 AS is_train,
           n % 5 * interval '1 day' AS delay,
           CASE WHEN n > 320 THEN 'late' ELSE (n % 2)::text END AS stage
    FROM generate_series(1, 400) n;
    ALTER TABLE products ADD PRIMARY KEY (id);
    CREATE VIEW unmeasured AS SELECT sold, nullif(lot, 3) AS lot FROM products;
    CREATE TABLE parts AS SELECT n AS id, n % 17 AS depth FROM generate_series(1, 400) n;
    CREATE SCHEMA depot;
    CREATE TABLE depot."Stock" AS SELECT n AS id, n % 2 AS y, n % 5 AS x FROM
        generate_series(1, 100) n;
    CREATE TABLE numbered (id serial PRIMARY KEY, x integer, y boolean);
    INSERT INTO numbered (x, y) SELECT n % 7, n % 2 = 0 FROM generate_series(1, 100) n;
    CREATE TABLE "Crew" AS SELECT * FROM numbered;
    CREATE FUNCTION stock_of(n integer) RETURNS TABLE (x integer, y boolean) LANGUAGE sql STABLE AS
        'SELECT g % 7, g % 2 = 0 FROM generate_series(1, n) g'"""
PLAN = "cerebro.plan"
SMALL = {"models": "'{linear}'", "configs": "1", "epochs": "1", "ensemble": "1", "seed": "1"}


def plan(source: str = "products", target: str = "sold", **arguments: str) -> Call:
    """Return a call of cerebro.plan; the arguments are as they are typed."""
    return Call(PLAN, {"source": f"'{source}'", "target": f"'{target}'", **SMALL, **arguments})


REFUSED_PLANS: dict[str, tuple[str, Call]] = {
    "a query": ("42602", plan("SELECT * FROM products JOIN parts USING (id) WHERE lot < 6")),
    "a query with a semicolon": ("42602", plan(" select * from products; ")),
    "a query in parentheses": ("42602", plan("(SELECT * FROM products)")),
    "a query with an alias": ("42602", plan("(SELECT * FROM products) AS p")),
    "a query by name": ("42602", plan("WITH p AS (SELECT * FROM products) SELECT * FROM p")),
    "values": (
        "42602",
        plan("VALUES (1, true), (2, false), (1, true), (2, false), (3, true), (3, false)"
             .replace("'", "''"), "column2", types="'{\"column1\": \"number\"}'",
             split="'random 0.5'"),
    ),
    "a table as a query": ("42602", plan("TABLE products")),
    "a query without a name": (
        "22004", Call(PLAN, {"query": "'TABLE products'", "target": "'sold'", **SMALL})
    ),
    "a join": ("42602", plan("products JOIN parts USING (id)")),
    "a filter": ("42602", plan("products WHERE lot < 6")),
    "a function": ("42602", plan("stock_of(100)", "y")),
    "a table with capitals": ("42P01", plan("Crew", "y")),
    "a table of another schema": ("42P01", plan("Stock", "y")),
    "a schema with capitals": ("42P01", plan('"DEPOT".stock', "y")),
    "an index": ("42809", plan("products_pkey")),
    "a sequence": ("42809", plan("numbered_id_seq", "y")),
    "a held back table with capitals": ("42P01", plan("numbered", "y", split="'table Crew'")),
    "a target in another case": ("42703", plan(target="SOLD")),
    "a target in quotes": ("42703", plan(target='"sold"')),
    "an expression as the target": ("42703", plan(target="lot % 2 > 0")),
    "two targets": ("22023", plan(target="sold, lot")),
    "an array of targets": ("22023", plan(target="{sold,lot}")),
    "a target of numbers in arrays": ("42804", plan(target="both")),
    "a target of dates": ("42804", plan(target="day")),
    "a target of spans": ("42804", plan(target="delay")),
    "a target of texts in arrays": ("42804", plan(target="tags")),
    "regression of texts": ("22023", plan(target="letters", task="'regression'")),
    "too many classes": ("22023", plan(target="id", task="'classification'")),
    "columns in another case": ("42703", plan(columns="'age, Pclass'")),
    "columns with a dot": ("42602", plan(columns="'\"Age\", Fare.Paid'")),
    "an exception in another case": ("42703", plan(columns="'* except age'")),
    "expressions as columns": ("42602", plan(columns="'lot, lot + width, coalesce(\"Age\", 0)'")),
    "types in another case": ("22023", plan(types="'{\"pclass\": \"category\"}'")),
    "types with a word for a kind": ("22023", plan(types="'{\"Pclass\": \"categorical\"}'")),
    "types of tags": ("22023", plan(columns="'tags, lot'", types="'{\"tags\": \"category\"}'")),
    "a split in another case": ("42703", plan(split="'group Pclass'")),
    "a split with a dot": ("42602", plan(split="'last 0.2 by Fare.Paid'")),
    "a group in another case": ("42703", plan(group_by="'pclass'")),
    "a group in quotes": ("42703", plan(group_by="'\"Pclass\"'")),
    "groups of an expression": (
        "42703", plan(group_by="'lot % 2'", min_group_rows="10", columns="'lot, width'")
    ),
    "groups of dates with times": ("42804", plan(group_by="'delay'", min_group_rows="10")),
    "groups of fractions": ("42804", plan(group_by="'Fare.Paid'", min_group_rows="10")),
    "a weight in another case": ("42703", plan(weight="'AGE'", columns="'lot'")),
    "columns of other types": ("22023", plan(columns="'tags, ages, flags, doc, place'")),
    "a column that names a row": ("22023", plan(columns="'id'")),
    "texts that all differ": ("22023", plan(columns="'serial'")),
    "letters for sides": ("22023", plan(split="'column letters'")),
    "letters for sides of a list": ("22023", plan(split="'column letters'", columns="'lot'")),
    "folds for sides": ("22023", plan(split="'column lot'")),
    "rows to train on by name": ("22023", plan(split="'column is_train'")),
    "one side": ("22023", plan(split="'column one'")),
    "a key for sides": ("22023", plan(split="'column id'")),
    "a target alone": ("22023", plan(columns="'sold'")),
    "a group in few words": ("22023", plan(min_group_rows="10")),
    "a short budget": ("22023", plan(budget="'10 ms'")),
    "parameters without a search": ("22023", plan(search_params="'{\"eta\": 4}'")),
    "parameters of a search in a list": ("22023", plan(search="'asha'", search_params="'[4]'")),
    "types in a list": ("22023", plan(types="'[]'")),
    "a template for texts": ("22023", plan(models="'{text}'", columns="'price, lot'")),
    "a template for images": ("22023", plan(models="'{cnn}'", columns="'lot'")),
    "one value for a group": ("22023", plan(split="'group one'", columns="'lot'")),
    "a column of one value": ("22023", plan(columns="'one, nothing'")),
    "an order of one value": ("22023", plan(split="'last 0.2 by one'")),
    "a class that came late": ("22023", plan(target="stage", split="'last 0.2 by id'")),
    "a metric of another target": (
        "22023", plan(target="lot", task="'regression'", metric="'mape'")
    ),
    "a population without ranges": (
        "22023", plan(search="'pbt'", configs="4", space="'{\"lr\": 0.01, \"weight_decay\": 0}'")
    ),
    "a target of a final metric": (
        "22023", plan(search="'asha'", search_params="'{\"target\": 0.9}'", metric="'f1'")
    ),
    "a limit among the parameters of a search": (
        "22023", plan(search="'asha'", search_params="'{\"max_cpu\": 30, \"eta\": 3}'")
    ),
    "an interval among the parameters of a search": (
        "22023", plan(search="'asha'", search_params="'{\"max_cpu\": \"1 hour\", \"eta\": 3}'")
    ),
    "costs of a number": (
        "22023", plan(target="lot", task="'regression'", costs="'{\"1\": {\"2\": 5}}'")
    ),
    "a mistake that costs less": ("22023", plan(costs="'{\"true\": {\"true\": 5}}'")),
    "no configurations": ("22023", plan(configs="0")),
    "a negative budget": ("22023", plan(budget="'-1 s'")),
}  # fmt: skip
"""Calls with the SQLSTATE of their errors; all plans, which cost the least."""


@pytest.fixture(scope="module")
def shop(bench: Workbench) -> Workbench:
    bench.rows(PRODUCTS)
    return bench


@pytest.mark.parametrize("case", REFUSED_PLANS)
def test_a_plan_succeeds_as_its_hint_writes_it(shop: Workbench, case: str) -> None:
    sqlstate, call = REFUSED_PLANS[case]
    error = error_of(shop, call)
    assert error is not None and error.pgcode == sqlstate, f"{call}: {error}"
    assert all(follow(shop, call))


MODEL = "shopped"


@pytest.mark.parametrize("template", OF_PLANS)
def test_the_hint_of_a_case_is_the_one_that_is_listed(shop: Workbench, template: str) -> None:
    _, call = REFUSED_PLANS[OF_PLANS[template]]
    error = error_of(shop, call)
    assert error is not None
    assert matches(template, str(error.diag.message_hint)), str(error)


def test_queries_in_hints_run(shop: Workbench) -> None:
    queries = list_queries()
    assert len(queries) > 6, "this test finds nothing any more"
    for query in queries:
        shop.rows(query.replace(OF_RUN, "run_id = 1"))


def test_an_empty_source_has_rows_to_count(shop: Workbench) -> None:
    shop.rows("CREATE TABLE blank AS SELECT lot, width, sold FROM products LIMIT 0")
    call = plan("blank")
    template = "SELECT count(*) FROM {}; counts the rows that you see. Add rows."
    (statement,) = read_statements(error_of(shop, call), template)
    assert shop.value(statement) == 0
    shop.rows("INSERT INTO blank SELECT lot, width, sold FROM products")
    assert shop.value(statement) == 400 and shop.rows(str(call))


def test_a_plan_that_reads_slowly_gets_more_time(shop: Workbench) -> None:
    """The least budget ends while the view is read, which takes longer."""
    shop.rows(
        "CREATE VIEW slow AS SELECT lot, width, sold FROM products, LATERAL"
        " pg_sleep(CASE id WHEN 1 THEN 1.1 ELSE 0 END)"
    )
    call = plan("slow", budget="'1 s'")
    template = "Read fewer columns or rows, or give it more time: budget => '{} s'."
    read_hint(error_of(shop, call), template)
    assert all(follow(shop, call))


def test_an_administrator_sets_a_price(shop: Workbench, shared_superuser: Workbench) -> None:
    call = plan(max_cost="0.5")
    template = (
        "An administrator can set one: SELECT cerebro.set('price_per_core_hour', 0.05); or write "
        "max_cpu."
    )
    (statement,) = read_statements(error_of(shop, call), template)
    shared_superuser.rows(statement)
    try:
        assert shop.rows(str(call))
    finally:
        shared_superuser.rows("SELECT cerebro.set('price_per_core_hour', NULL)")


def test_the_owner_of_a_column_grants_it(shop: Workbench, shared_superuser: Workbench) -> None:
    with another_role(shop, shared_superuser, "reader of lots") as reader:
        shop.rows('GRANT SELECT (lot, width) ON products TO "reader of lots"')
        call = plan("public.products", columns="'lot, width'")
        template = "Its owner can let you read {}: GRANT SELECT ({}) ON {} TO {};"
        (statement,) = read_statements(error_of(reader, call), template)
        shop.rows(statement)
        assert reader.rows(str(call))


FUNCTIONS = (
    "cerebro.predict",
    "cerebro.evaluate",
    "cerebro.importance",
    "cerebro.drift",
    "cerebro.attribution",
)


@pytest.fixture(scope="module")
def trained(shop: Workbench) -> Workbench:
    arguments = {**plan().arguments, "model": f"'{MODEL}'", "columns": "'lot, width'"}
    shop.rows(str(Call("cerebro.train", arguments)))
    return shop


def test_runs_to_start_from_are_an_argument(trained: Workbench) -> None:
    params = json.dumps({"start_from": [MODEL], "eta": 3})
    call = plan(search="'asha'", search_params=f"'{params}'", columns="'lot, width'")
    assert all(follow(trained, call))


def call_of_model(function: str, **arguments: str) -> Call:
    return Call(function, {"model": f"'{MODEL}'", "source": "'products'", **arguments})


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("source", ["'PRODUCTS'", "'Products'", "'SELECT * FROM products'"])
def test_the_source_of_a_model_is_written(trained: Workbench, function: str, source: str) -> None:
    trained.rows('CREATE TABLE IF NOT EXISTS "Products" AS TABLE products')
    arguments = {"source": "'\"PRODUCTS\"'" if source == "'PRODUCTS'" else source}
    if source == "'Products'":
        trained.rows("ALTER TABLE products RENAME TO articles")
    try:
        assert all(follow(trained, call_of_model(function, **arguments)))
    finally:
        if source == "'Products'":
            trained.rows("ALTER TABLE articles RENAME TO products")


def test_a_query_is_an_argument_of_its_own(trained: Workbench) -> None:
    call = call_of_model("cerebro.evaluate", source="'SELECT * FROM products WHERE lot < 6'")
    read_hint(error_of(trained, call), "Leave {} out, and write query => {}{}.")
    assert all(follow(trained, call))


@pytest.mark.parametrize(
    "call",
    [
        call_of_model("cerebro.evaluate", group_by="'pclass'"),
        call_of_model("cerebro.evaluate", group_by="'Fare.paid'"),
        Call("cerebro.refresh", {"model": f"'{MODEL}'", "since": "'Age'", "epochs": "1"}),
        call_of_model("cerebro.predict", id_col="'Age, id'"),
        call_of_model("cerebro.attribution", id_col="'Fare.Paid'"),
    ],
    ids=str,
)
def test_the_columns_of_a_call_are_written(trained: Workbench, call: Call) -> None:
    assert all(follow(trained, call))


def test_an_owner_is_told_what_to_grant(trained: Workbench, shared_superuser: Workbench) -> None:
    with another_role(trained, shared_superuser, "browser") as browser:
        trained.rows("GRANT SELECT ON products TO browser")
        call = call_of_model("cerebro.predict", source="'public.products'")
        for owner in ({}, {"owner": "'nobody'"}):
            error = error_of(browser, call._replace(arguments={**call.arguments, **owner}))
            assert error is not None and error.pgcode == "42704"
            granted = read_statements(error, "SELECT cerebro.grant_predict({}, {});")
            assert granted == ["SELECT cerebro.grant_predict('shopped', 'browser');"]
        trained.rows("".join(granted))
        template = (
            "{} {} granted you one. Name the owner of a model that is not your own: owner => {}."
        )
        read_hint(error_of(browser, call), template)
        assert all(follow(browser, call))


PACKED = {
    "source_table": "'products'",
    "output_table": "'products_packed'",
    "dependent_varname": "'sold'",
    "independent_varname": "'lot'",
}
WRONG_PACKING = {
    "a table": {"source_table": "'CREW'", "dependent_varname": "'y'", "independent_varname": "'x'"},
    "a query": {"source_table": "'SELECT * FROM products'"},
    "a target": {"dependent_varname": "'pclass'"},
    "inputs": {"independent_varname": "'age, lot'"},
    "inputs with dots": {"independent_varname": "'Fare.Paid, lot'"},
    "a weight": {"sample_weight_varname": "'AGE'"},
    "rows without inputs": {"source_table": "'unmeasured'"},
}


def test_a_query_in_place_of_a_packed_source_is_a_view(shop: Workbench) -> None:
    call = Call("training_preprocessor_dl", {**PACKED, **WRONG_PACKING["a query"]})
    read_hint(error_of(shop, call), "{} then {} => {}.")


@pytest.mark.parametrize("case", WRONG_PACKING)
def test_the_columns_of_a_packed_table_are_written(shop: Workbench, case: str) -> None:
    call = Call("training_preprocessor_dl", {**PACKED, **WRONG_PACKING[case]})
    assert all(follow(shop, call, "DROP TABLE IF EXISTS products_packed, products_packed_summary"))


def test_another_role_without_such_a_model_is_a_role(trained: Workbench) -> None:
    """A role may be called like a word of the sentence."""
    error = error_of(trained, call_of_model("cerebro.predict", owner="'nobody'"))
    assert error is not None and error.pgcode == "42704"
    assert "role 'nobody' has no model" in str(error)


def test_a_misspelt_word_is_not_listed_twice(shop: Workbench) -> None:
    """The message lists the words already; the hint says more, or nothing."""
    error = error_of(shop, plan(metric="'f2'"))
    assert error is not None and "expected one of accuracy" in str(error)
    assert error.diag.message_hint is None
    error = error_of(shop, plan(metric="'log_los'"))
    assert error is not None and error.diag.message_hint == "Did you mean log_loss?"


@pytest.mark.long
@pytest.mark.postgresql("the superuser of a cluster is not given")
def test_a_budget_in_which_nothing_was_trained_is_made_longer(
    shop: Workbench, shared_superuser: Workbench
) -> None:
    """The wait for a first model is left out: it would take a minute to be in vain."""
    wait = "import cerebro_plpy.operations.train_budget as budget; budget.GRACE_SECONDS = {}"
    call = plan(models="'{transformer}'", columns="'lot'", budget="'1 s'", model="'brief'")
    call = call._replace(function="cerebro.train")
    template = "Networks are compiled first. A call with budget => '{} seconds' has more time."
    shared_superuser.rows(f"DO LANGUAGE plpython3u '{wait.format(0)}'")
    (way,) = read_ways(read_hint(error_of(shared_superuser, call), template))
    shared_superuser.rows(f"DO LANGUAGE plpython3u '{wait.format(60)}'")
    assert shop.rows(str(way.change(call)))


def test_a_short_budget_begins_with_small_networks(shop: Workbench) -> None:
    query = (
        "SELECT what FROM cerebro.plan('products', 'sold', columns => 'lot, width', configs => 3, "
        "seed => 1, budget => %s) WHERE section = 'configuration' ORDER BY name"
    )
    short, usual = ([row[0] for row in shop.rows(query, budget)] for budget in ("20 s", "60 s"))
    assert short[0] == "linear: usual values"
    assert usual[0] == "boosting: usual values"


def test_a_plan_fits_a_terminal(shop: Workbench) -> None:
    """Values that do not fit are counted; `data` has all of them."""
    query = (
        "SELECT what, data FROM cerebro.plan('products', 'sold', columns => 'lot, width', "
        "configs => 12, seed => 1) WHERE section = 'configuration'"
    )
    rows = shop.rows(query)
    assert len(rows) == 12 and all(len(what) <= 55 for what, _ in rows)
    assert any(re.search(r", and \d+ more$", what) for what, _ in rows)
    for what, data in rows:
        template, _, values = re.sub(r", and \d+ more$", "", what).partition(": ")
        for text in values.split(", ") if values != "usual values" else ():
            name, _, value = text.partition(" ")
            assert str(data[name]) == value, f"{template}: {text}"


@pytest.mark.parametrize(
    ("call", "message", "works"),
    [
        (plan(budgets="'1 s'"), "function cerebro.plan(source => unknown", plan()),
        (plan(models="'linear'"), 'malformed array literal: "linear"', plan()),
        (
            Call("cerebro.predict_rows", {"model": f"'{MODEL}'", "row_type": "'products'"}),
            "could not determine polymorphic type",
            Call("cerebro.predict_rows", {"model": f"'{MODEL}'", "row_type": "NULL::products"}),
        ),
    ],
)
def test_errors_of_postgresql_are_those_of_the_page(
    trained: Workbench, call: Call, message: str, works: Call
) -> None:
    """docs/reference/troubleshooting.md says what to do, which no hint of ours can."""
    error = error_of(trained, call)
    assert error is not None and message in str(error)
    assert trained.rows(str(works))
