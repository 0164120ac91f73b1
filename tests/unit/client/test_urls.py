"""All forms of a database URL lead to the same connection."""

from __future__ import annotations

from urllib.parse import quote

import pytest
import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st

import cerebro_db
from cerebro_db import errors
from cerebro_db.driver import get_engine, parse_url

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12
)


@given(user=WORDS, password=WORDS, database=st.text("abcxyz_09", min_size=1))
@example(user="ann", password="%00", database="flowers")
def test_parts_of_a_url_survive(user: str, password: str, database: str) -> None:
    """The parts are quoted as a user must quote them.

    SQLAlchemy 2.0.0 itself does not quote percent signs of a password.
    """
    credentials = ":".join(quote(part, safe="") for part in (user, password))
    read = parse_url(f"postgresql://{credentials}@db.example:5433/{database}")
    assert read == sa.URL.create(
        "postgresql+psycopg2", user, password, "db.example", 5433, database
    )


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///flowers?host=/run/pg",
        "postgres:///flowers?host=/run/pg",
        "postgresql://%2Frun%2Fpg/flowers",
    ],
)
def test_a_socket_directory_is_understood_in_both_places(url: str) -> None:
    engine = get_engine(url)
    _, parameters = engine.dialect.create_connect_args(engine.url)
    assert (parameters["host"], parameters["dbname"]) == ("/run/pg", "flowers")


@pytest.mark.parametrize(
    "url", ["mysql://localhost/x", "postgresql+asyncpg://localhost/x", "flowers", ""]
)
def test_other_addresses_are_refused_with_advice(url: str) -> None:
    with pytest.raises(errors.InvalidParameter) as caught:
        cerebro_db.connect(url)
    assert caught.value.hint is not None and "postgresql://" in caught.value.hint


def test_an_engine_is_used_as_it_is_and_left_open() -> None:
    engine = sa.create_engine("postgresql+psycopg2://localhost/flowers")
    pool = engine.pool
    with cerebro_db.connect(engine) as session:
        assert session.engine is engine
    assert engine.pool is pool
    with cerebro_db.connect("postgresql://localhost/flowers") as session:
        pool = session.engine.pool
    assert session.engine.pool is not pool, (
        "an engine made by connect is disposed of with its session"
    )


def test_an_engine_of_another_driver_is_refused() -> None:
    with pytest.raises(errors.InvalidParameter) as caught:
        cerebro_db.connect(sa.create_engine("sqlite://"))
    assert "sqlite" in caught.value.message


def test_a_server_that_is_not_there_is_a_connection_failure() -> None:
    with (
        pytest.raises(errors.ConnectionFailure),
        cerebro_db.connect("postgresql://127.0.0.1:1/x") as session,
    ):
        session.runs()
