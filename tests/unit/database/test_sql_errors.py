"""An error of the package as PL/Python reports it: its class, a colon, and its text."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.database.sessions.sql_errors import convert_to_sql_error, raise_to_sql
from cerebro_plpy.errors import MESSAGE_PREFIX, CerebroError, InvalidParameter

PLPY = SimpleNamespace(Error=Exception)
WORDS = st.text(st.sampled_from("ab_ :\x00\ud800ä"), max_size=12)


def report(error: Exception) -> str:
    """Return the message that PL/Python makes of an exception of a built-in module."""
    assert type(error).__module__ == "builtins"
    return f"{type(error).__name__}: {error}"


@given(st.sampled_from(["train", "madlib_keras_fit", "a b", ""]), WORDS)
def test_a_message_is_reported_as_it_is_or_after_one_prefix(name: str, text: str) -> None:
    message = f"{name} error: {text}" if name else text
    reported = report(convert_to_sql_error(PLPY, CerebroError(message)))
    printable = message.encode("utf-8", "replace").decode().replace("\0", "?")
    assert reported.removeprefix(MESSAGE_PREFIX) == printable


def test_code_detail_and_hint_are_attributes() -> None:
    def fail() -> None:
        raise InvalidParameter("set error: x is 1.", detail="d\0", hint="Write 2.")

    with pytest.raises(PLPY.Error) as raised:
        raise_to_sql(PLPY, fail)
    error = raised.value
    found = (error.sqlstate, error.detail, error.hint, error.schema_name)
    assert found == ("22023", "d?", "Write 2.", None)
    assert report(error) == "set error: x is 1."
    assert error.__context__ is None
