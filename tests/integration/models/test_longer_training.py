"""`cerebro.refresh` trains the same model longer, and says what it does not learn from."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from followed_hints import read_statements
from processes import eventually
from roles import refused
from workbench import Workbench

MODEL = "Ann's loans"
TRAIN = (
    "SELECT FROM cerebro.train('loans', 'grade', %s, columns => '* except late', models =>"
    " '{linear}', configs => 1, epochs => 2, ensemble => 1, seed => 1, metric => 'log_loss')"
)
VERSIONS = (
    "SELECT version, deployed, value, training_rows, validation_rows, run_id FROM"
    " cerebro.model_version WHERE model = %s ORDER BY version"
)
REFRESH = "SELECT version, training_rows, validation_rows FROM cerebro.refresh(%s"


@pytest.fixture(scope="module")
def run_id(bench: Workbench) -> int:
    """The run of a model that was trained too briefly."""
    bench.rows(
        "CREATE TABLE loans AS SELECT n AS id, n * 7919 % 1009 AS x, sin(n) AS z, false AS late,"
        " CASE WHEN (n * 7919 % 1009 > 500) <> (sin(n) > 0.6) THEN 'a' ELSE 'b' END AS grade"
        " FROM generate_series(1, 800) n; ALTER TABLE loans ADD PRIMARY KEY (id)"
    )
    bench.rows(TRAIN, MODEL)
    return bench.newest_run()


@pytest.fixture
def session(bench: Workbench, run_id: int) -> Iterator[Workbench]:
    bench.messages()
    yield bench
    bench.rows("DELETE FROM loans WHERE id > 800 OR id < 1; ALTER TABLE loans DROP IF EXISTS more")


def test_the_same_rows_are_trained_on_longer(session: Workbench, run_id: int) -> None:
    """The loss over the same rows falls, and the better version predicts."""
    assert not session.rows(f"{REFRESH})", MODEL)
    told = "".join(session.messages())
    assert "nothing to do: " in told
    call = re.search(r"To train longer on them: (SELECT .*;)", told)
    assert call is not None
    session.rows(call[1])
    first, longer = session.rows(VERSIONS, MODEL)
    assert longer[1] and not first[1] and longer[2] < first[2]
    assert longer[3:5] == first[3:5]
    warm = "SELECT spec -> 'train' -> 'start', epochs FROM cerebro.run WHERE run_id = %s"
    ((start, epochs),) = session.rows(warm, longer[5])
    assert start[:1] == [run_id] and epochs == 20


@pytest.mark.parametrize("call", ["set_epochs(%s, 7)", "resume(%s)"])
def test_a_completed_run_says_how_to_train_longer(
    session: Workbench, run_id: int, call: str
) -> None:
    """Each statement of the hint works, with the epochs that were wanted, if any."""
    error = refused(session, f"SELECT cerebro.{call}", run_id, code="55000")
    statements = read_statements(error, "SELECT * FROM cerebro.refresh({}, epochs => {});")
    assert ("epochs => 7" in statements[-1]) == ("set_epochs" in call)
    before = len(session.rows(VERSIONS, MODEL))
    for statement in statements:
        session.rows(re.sub("epochs => [0-9]+", "epochs => 1", statement))
    assert len(session.rows(VERSIONS, MODEL)) == before + 1
    session.rows("SELECT cerebro.deploy(%s, 'newest')", MODEL)
    error = refused(session, f"SELECT cerebro.{call}", run_id, code="55000")
    session.rows(read_statements(error, "SELECT cerebro.deploy({}, '{}'); {}")[0])
    assert [row[5] for row in session.rows(VERSIONS, MODEL) if row[1]] == [run_id]


def test_others_are_tried_in_a_run_of_their_own(session: Workbench, run_id: int) -> None:
    """A run that trains a version longer takes no others; the call of the hint can be planned."""
    if session.rows(VERSIONS, MODEL)[-1][5] == run_id:
        session.rows(f"{REFRESH}, epochs => 1)", MODEL)
    longer = session.rows(VERSIONS, MODEL)[-1][5]
    error = refused(session, "SELECT cerebro.add_configs(%s, '{}', 2)", longer, code="0A000")
    (statement,) = read_statements(
        error, "SELECT * FROM cerebro.train({}, start_from => ARRAY[{}]);"
    )
    assert statement.startswith("SELECT * FROM cerebro.train(")
    assert session.rows(statement.replace("cerebro.train(", "cerebro.plan("))


def test_wrong_epochs_and_budgets_are_refused(session: Workbench, run_id: int) -> None:
    refused(session, f"{REFRESH}, epochs => 0)", MODEL, code="22023", words="epochs is 0")
    refused(session, f"{REFRESH}, budget => '1 ms')", MODEL, code="22023", words="budget")


def test_it_says_what_it_does_not_learn_from(session: Workbench, run_id: int) -> None:
    session.rows(
        "ALTER TABLE loans ADD more integer; INSERT INTO loans SELECT n, n, 0.5, false, CASE WHEN"
        " n < 813 THEN 'c' WHEN n < 820 THEN 'd' WHEN n < 823 THEN 'e' WHEN n < 827 THEN NULL ELSE"
        " 'a' END FROM generate_series(801, 840) n"
    )
    session.rows(f"{REFRESH})", MODEL)
    told = "".join(session.messages())
    assert "22 rows have classes of grade that the model does not know" in told
    assert "'c' (12), 'd' (7)" in told and "'e'" not in told
    assert "4 rows have no grade, and are left out" in told
    assert "column id is left out" in told
    assert '"public"."loans" that came after the version was trained are left out: more.' in told


def test_since_says_which_rows_it_looks_for(session: Workbench, run_id: int) -> None:
    """A row that came late with a smaller value is not seen, and nothing else is claimed."""
    session.rows("INSERT INTO loans VALUES (0, 1, 0.5, false, 'a')")
    assert not session.rows(f"{REFRESH}, since => 'id')", MODEL)
    told = "".join(session.messages())
    assert 'no rows with "id" above 8' in told
    call = re.search(r"count without since: (SELECT .*?;)", told)
    assert call is not None and session.rows(call[1])
    session.rows("INSERT INTO loans VALUES (841, 1, 0.5, false, 'c'), (842, 1, 0.5, false, 'a')")
    session.messages()
    assert session.rows(f"{REFRESH}, since => 'id')", MODEL)
    assert "1 row has classes of grade" in "".join(session.messages())


def test_a_source_that_was_renamed_is_named(session: Workbench, run_id: int) -> None:
    """With the view of the hint, the version is trained further."""
    session.rows("ALTER TABLE loans RENAME TO debts")
    error = refused(session, f"{REFRESH}, epochs => 1)", MODEL, code="42P01", words="loans")
    template = "If {} has its rows now: CREATE VIEW {} AS SELECT * FROM {};"
    (statement,) = read_statements(error, template)
    assert statement == 'CREATE VIEW "public"."loans" AS SELECT * FROM "public"."debts";'
    session.rows(statement)
    assert session.rows(f"{REFRESH}, epochs => 1)", MODEL)
    session.rows("DROP VIEW loans; ALTER TABLE debts RENAME TO loans")


def test_a_verification_that_took_too_long_is_called_again(session: Workbench) -> None:
    """Its run is removed, so that the hint does not resume it, whenever the timeout came."""
    session.messages()
    seconds = 0.0
    while not any("It is removed from the log" in message for message in session.messages()):
        seconds += 0.1
        session.rows(f"SET statement_timeout = '{seconds * 1000:.0f}ms'")
        error = refused(session, "SELECT cerebro.verify(%s)", MODEL, code="57014")
        (statement,) = read_statements(
            error, "statement_timeout is {}. SET statement_timeout = 0; then call again."
        )
        session.rows(statement)


def test_a_model_that_is_dropped_meanwhile_is_not_made_again(
    session: Workbench, run_id: int, person: Workbench
) -> None:
    with session.calling(
        lambda: refused(
            session, f"{REFRESH}, epochs => 400)", MODEL, code="55000", words="was dropped"
        )
    ) as refreshed:
        last = person.newest_run()
        eventually(lambda: person.newest_run() > last or refreshed.done())
        person.rows("SELECT cerebro.drop_model(%s)", MODEL)
        refreshed.result()
    assert not session.rows(VERSIONS, MODEL)
