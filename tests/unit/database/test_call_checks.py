"""What is in the way of a call is told with what leads out of it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cerebro_plpy.database.call_checks import check_transaction
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import CerebroError, ReadOnlyTransaction

USUAL = {
    "isolation": "read committed",
    "default_isolation": "read committed",
    "read_only": "off",
    "default_read_only": "off",
    "is_standby": False,
}


class OneRow:
    """A session whose transaction has these properties."""

    def __init__(self, **properties: object) -> None:
        self._properties = {**USUAL, **properties}

    def row(self, statement: str) -> dict[str, Any]:
        """Return the properties."""
        return self._properties


def check(**properties: object) -> CerebroError:
    """Return the error of a call in a transaction with these properties."""
    with pytest.raises(CerebroError) as error:
        check_transaction(cast(Database, OneRow(**properties)), "train", has_background=True)
    return error.value


def test_a_usual_transaction_is_accepted() -> None:
    check_transaction(cast(Database, OneRow()), "train")
    check_transaction(cast(Database, OneRow(isolation="read uncommitted")), "train")


def test_a_standby_names_the_primary() -> None:
    """Nothing that could be set there would help, whatever its defaults are."""
    for default in ("on", "off"):
        error = check(read_only="on", default_read_only=default, is_standby=True)
        assert isinstance(error, ReadOnlyTransaction) and "standby" in error.message
        assert error.hint is not None and "primary" in error.hint
        assert "SET" not in error.hint and "BEGIN" not in error.hint


def test_a_level_of_one_transaction_is_not_set_for_the_session() -> None:
    error = check(isolation="serializable")
    assert error.hint is not None and error.hint.startswith("ROLLBACK;")
    error = check(isolation="serializable", default_isolation="serializable")
    assert error.hint is not None and error.hint.startswith("SET default_transaction_isolation")
