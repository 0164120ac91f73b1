"""An error of the server arrives as the class of its SQLSTATE, in the words of its author."""

from __future__ import annotations

from types import SimpleNamespace

import psycopg2
import pytest

import cerebro_plpy.errors as backend
from cerebro_db import errors


def classes(base: type[Exception]) -> dict[str, str]:
    return {cls.__name__: cls.sqlstate for cls in base.__subclasses__()}  # type: ignore[attr-defined]


def refusal(sqlstate: str | None, message: str, hint: str | None = None) -> Exception:
    """Stands in for psycopg2's error, whose diagnostics only a server can fill."""
    error = Exception(f"ERROR:  {message}")
    error.pgcode = sqlstate  # type: ignore[attr-defined]
    error.diag = SimpleNamespace(  # type: ignore[attr-defined]
        message_primary=message, message_hint=hint, message_detail=None
    )
    return error


def test_the_backend_and_the_client_have_the_same_classes() -> None:
    assert classes(errors.CerebroError) == classes(backend.CerebroError)


def test_no_two_classes_share_a_sqlstate() -> None:
    states = classes(errors.CerebroError).values()
    assert len(set(states)) == len(states)


@pytest.mark.parametrize("cls", errors.CerebroError.__subclasses__())
def test_a_sqlstate_chooses_the_class(cls: type[errors.CerebroError]) -> None:
    error = errors.convert_driver_error(
        refusal(cls.sqlstate, "cerebro_db: no such thing", "Make one.")
    )
    assert type(error) is cls
    assert (error.message, error.hint, error.sqlstate) == (
        "no such thing",
        "Make one.",
        cls.sqlstate,
    )
    assert str(error) == "no such thing\nHINT: Make one."


@pytest.mark.parametrize(
    ("received", "plain"),
    [
        ("plpy.Error: x: y", "x: y"),
        ("plpy.SPIError: x", "x"),
        ("cerebro_db: x", "x"),
        ("train error: x", "train error: x"),
        ("spiexceptions.UndefinedTable: x", "x"),
        ("cerebro_plpy.errors.InvalidParameter: x", "x"),
        ("cerebro_plpy is not installed: x", "cerebro_plpy is not installed: x"),
        ("see plpy.Error: x", "see plpy.Error: x"),
    ],
)
def test_only_the_prefix_that_pl_python_adds_is_taken_off(received: str, plain: str) -> None:
    assert errors.convert_driver_error(refusal("22023", received)).message == plain


def test_an_unknown_sqlstate_is_kept() -> None:
    error = errors.convert_driver_error(refusal("23505", "duplicate key"))
    assert (type(error), error.sqlstate) == (errors.CerebroError, "23505")


def test_no_sqlstate_means_that_the_server_was_not_reached() -> None:
    error = errors.convert_driver_error(psycopg2.OperationalError("connection refused\n"))
    assert isinstance(error, errors.ConnectionFailure)
    assert error.message == "connection refused"


@pytest.mark.parametrize(
    ("message", "hint", "words"),
    [
        ("permission denied for schema cerebro", None, "SELECT cerebro.grant_usage("),
        ("keine Berechtigung für Schema cerebro", None, "SELECT cerebro.grant_usage("),
        ("permission denied for table cerebro_rows", None, None),
        ("permission denied for schema cerebro", "Another hint.", "Another hint."),
    ],
)
def test_a_role_that_may_not_use_the_schema_is_told_who_lets_it_in(
    message: str, hint: str | None, words: str | None
) -> None:
    error = errors.convert_driver_error(refusal("42501", message, hint))
    if words is None:
        assert error.hint is None
    else:
        assert words in str(error.hint)
