"""The words of a column that has the side of each row."""

from __future__ import annotations

import pytest
from workbench import Workbench

ROWS = 800
CALL = "columns => 'x', models => '{linear}', configs => 1, epochs => 3, seed => 1"
MARKED = f"""
    CREATE TABLE marked AS
    SELECT n AS id, n % 17 AS x, n % 17 > 8 AS y,
           (ARRAY['TRAIN', 'TRAIN', ' Train', 'TEST '])[n % 4 + 1] AS capitals,
           (ARRAY['train', 'train', 'eval', 'test'])[n % 4 + 1] AS three,
           (ARRAY['learn', 'learn', 'held-out', 'Held out'])[n % 4 + 1] AS held,
           (ARRAY['fit', 'fit', 'holdout', NULL])[n % 4 + 1] AS gaps,
           (n % 4 = 0)::int AS flag, (n % 4 = 0)::int::numeric(4, 2) AS fraction,
           (n % 4 = 0)::int::text AS digit, n % 4 = 0 AS is_test,
           CASE WHEN n % 4 = 0 THEN 'yes' ELSE 'no' END AS answer,
           (ARRAY['T', 'V'])[(n % 4 = 0)::int + 1] AS letters, n % 5 AS fold,
           (n % 4 > 0)::int AS in_training, CASE WHEN n % 4 > 0 THEN 'train' END AS half
    FROM generate_series(1, {ROWS}) n;
    ALTER TABLE marked ADD PRIMARY KEY (id)"""
SIDES = {
    "capitals": (600, 200),
    "three": (400, 200),
    "held": (400, 400),
    "gaps": (400, 200),
    "flag": (600, 200),
    "fraction": (600, 200),
    "digit": (600, 200),
    "is_test": (600, 200),
    "answer": (600, 200),
}
"""Training and validation rows by the name of a column."""
REFUSED = {
    "letters": "'T' in 600 rows, 'V' in 200 rows",
    "fold": "'0' in 160 rows, '1' in 160 rows, '2' in 160 rows",
    "in_training": "whose name asks for rows to train on",
    "half": "no word for rows to compare models by: it is 'train' in 600 rows",
}
"""Words of the errors, by the name of a column."""


@pytest.fixture(scope="module")
def marked(bench: Workbench) -> Workbench:
    bench.rows(MARKED)
    return bench


def plan(bench: Workbench, column: str) -> dict[str, int]:
    """Return the rows of each side by its name."""
    rows = bench.rows(
        "SELECT name, substring(what FROM '[0-9]+')::int FROM cerebro.plan('marked', 'y', split => "
        f"'column {column}', {CALL}) WHERE section = 'rows' AND what ~ '^[0-9]+ rows'"
    )
    return dict(rows)


@pytest.mark.parametrize("column", SIDES)
def test_usual_words_divide_rows(marked: Workbench, column: str) -> None:
    """Rows for tests are left out if others are for validation."""
    rows = plan(marked, column)
    assert (rows["training"], rows["validation"]) == SIDES[column]


@pytest.mark.parametrize("column", REFUSED)
def test_other_columns_are_refused_with_their_values(marked: Workbench, column: str) -> None:
    with pytest.raises(Exception, match="split names column") as error:
        plan(marked, column)
    assert REFUSED[column] in str(error.value)
    assert "Understood are train" in str(error.value)
