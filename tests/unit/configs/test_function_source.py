"""Sources of custom functions: what is taken, what is refused, and that nothing of it runs."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.params import custom_functions, function_source
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.custom_functions import Functions
from cerebro_plpy.errors import CerebroError, FeatureNotSupported, InvalidParameter
from cerebro_plpy.run.log.form_timings import hash_program

DEFINING = {
    "def f(a, b): pass": "f",
    "class F(Base): pass": "F",
    "import os.path": "os",
    "import os.path as p": "p",
    "from a import b": "b",
    "from a import b as c": "c",
    "f = g = make()": "g",
    "f: Loss = make()": "f",
    "(a, [b, *c]) = d": "c",
    "raise ValueError('at once')\ndef f(a, b): pass": "f",
    "@decorated\ndef f(a, b): pass": "f",
}
NOT_DEFINING = [
    "f", "f()", "x.f = 1", "x[f] = 1", "def g():\n    def f(a, b): pass", "if x:\n    f = 1",
    "from a import *",
    "del f", "lambda f: f", "f += 1", "for f in x: pass",
]  # fmt: skip


@pytest.mark.parametrize(("source", "name"), DEFINING.items())
def test_what_a_source_defines(source: str, name: str) -> None:
    assert function_source.check_source(source, name) == (source.encode(), name)
    assert function_source.check_source(source.encode(), name) == (source.encode(), name)


@pytest.mark.parametrize("source", NOT_DEFINING)
def test_what_it_does_not_define(source: str) -> None:
    with pytest.raises(InvalidParameter, match="does not define 'f'"):
        function_source.check_source(source, "f")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [print, {"a": [1, 2.5, "x"]}, {"f"}, ValueError("x")])
def test_a_pickle_of_any_protocol_is_told_apart(value: object, protocol: int) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        function_source.check_source(pickle.dumps(value, protocol), "f")
    assert caught.value.hint and "inspect.getsource" in caught.value.hint


@given(st.binary(max_size=60) | st.text(max_size=60), st.text(max_size=8) | st.just("f"))
def test_any_object_is_taken_or_refused_as_such(source: bytes | str, name: str) -> None:
    try:
        stored, taken = function_source.check_source(source, name)
    except CerebroError as error:
        assert error.message
    else:
        assert stored == (source.encode() if isinstance(source, str) else source) and taken == name


@pytest.mark.parametrize("k", [1, 5, 1000])
def test_the_metric_of_the_k_best_is_a_source(k: int) -> None:
    source, name = function_source.make_top_k_accuracy(k)
    assert function_source.check_source(source, name)[1] == name == f"top_{k}_accuracy"


COMPILE = "optimizer='SGD',loss='f',metrics=['G']"


def program(**digests: str) -> Any:
    found = Functions("t", tuple(sorted(digests.items())))
    return {"compile": parse_compile_params(COMPILE, found).to_json()}


def test_timings_are_those_of_a_source() -> None:
    """And of no other function of the table."""
    assert hash_program(program(f="1", G="2")) == hash_program(program(f="1", G="2", other="3"))
    assert hash_program(program(f="1", G="2")) != hash_program(program(f="1", G="3"))


def test_names_keep_their_case() -> None:
    with pytest.raises(
        InvalidParameter, match="custom function 'G' is not defined in object table 't'!"
    ):
        program(f="1", g="2")


def test_texts_that_are_only_read_may_name_anything() -> None:
    parsed = parse_compile_params(COMPILE, custom_functions.ANY_FUNCTIONS)
    assert parsed.loss == "f" and parsed.metrics == ("G",) and parsed.custom_names == {"f", "G"}


@pytest.mark.parametrize("digests", [None, {}, [], "x", 5])
def test_a_log_that_names_no_functions(digests: object) -> None:
    assert (
        custom_functions.read_logged_functions("t", digests) is None
        and custom_functions.read_logged_functions(None, {"f": "1"}) is None
    )


def test_functions_that_changed() -> None:
    before, now = (
        custom_functions.read_logged_functions("t", {"f": "1", "g": "2"}),
        custom_functions.read_logged_functions("t", {"f": "1", "g": "3"}),
    )
    assert custom_functions.list_changed_functions(before, now) == [
        "g"
    ] and custom_functions.list_changed_functions(before, None) == ["f", "g"]
    assert (
        custom_functions.list_changed_functions(before, before)
        == custom_functions.list_changed_functions(None, now)
        == []
    )


def test_a_source_may_be_indented_as_a_whole() -> None:
    stored, _ = function_source.check_source(
        "\n    def f(y_true, y_pred):\n        return y_pred\n    ", "f"
    )
    assert stored.decode() == "\ndef f(y_true, y_pred):\n    return y_pred\n"
