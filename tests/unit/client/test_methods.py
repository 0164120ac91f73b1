"""Every function that users may call has a method, and every argument of it can be given."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_type_hints
from unittest import mock

import pytest
import sqlalchemy as sa
from sources import sql_files

import cerebro_db
from cerebro_db import arguments, errors
from cerebro_db.sql_session import SqlSession

SCRIPTS = "\n".join(sql_files().values())
FUNCTION = re.compile(r"CREATE OR REPLACE FUNCTION (?:cerebro\.)?(\w+)\((.*?)\) RETURNS", re.DOTALL)
INTERNAL = re.compile(
    r"COMMENT ON FUNCTION (?:cerebro|cerebro_internal)\.(\w+)\([^)]*\)\s+IS 'Internal: "
)
ARGUMENT = re.compile(r"(?:^|,)\s*(\w+) ")
# MADlib's scripts call version, and a session has versions() instead. The rows
# of predict_rows have a type that only SQL names.
NOT_CALLED = {"version", "predict_rows"}


class Result(dict[str, Any]):
    """A result of any function, which converts to any type that a method returns."""

    def __int__(self) -> int:
        return 0


class Recorder(SqlSession):
    """A session that records the calls instead of sending them."""

    schema = "madlib"

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__(engine, print)
        self.called: dict[str, set[str]] = {}

    def _call_function(
        self, function: tuple[str, str], on_tick: Callable[[], None], arguments: dict[str, object]
    ) -> Any:
        self.called.setdefault(function[1], set()).update(arguments)
        return Result()

    def query_function(
        self,
        function: Sequence[str],
        arguments: Mapping[str, object],
        on_tick: Callable[[], None] = lambda: None,
    ) -> list[tuple[Any, ...]]:
        self.called[function[1]] = set(arguments)
        return []


def options(kind: type[Any]) -> dict[str, Any]:
    return dict.fromkeys(get_type_hints(kind))


def call_everything(session: cerebro_db.Session) -> None:
    session.stop_config(1, 2)
    session.continue_config(1, 2)
    session.clone_config(1, 2, {"batch_size": 8}, warm=False)
    session.add_configs(1, {"models": [1]}, 2, "a")
    session.drill_down(1, 2, {"models": [1]}, 3)
    session.set_epochs(1, 2, 3)
    session.prioritize(1, 2)
    session.pause_run(1)
    session.continue_run(1)
    session.load_model({}, "a", name="b", description="c", weights=[])
    session.delete_model("a", 1)
    session.load_function("a", "b", "c", description="d")
    session.load_top_k_accuracy("a", 1)
    session.delete_function("a", 1)
    session.delete_function("a", "b")
    session.load_example("a", "b")
    session.window_series("a", "b", "c", "d", "e", 1, **options(arguments.WindowOptions))
    session.pack("a", "b", "c", "d", **options(arguments.PackOptions))
    session.pack_validation("a", "b", "c", "d", "e", **options(arguments.PackValidationOptions))
    session.configs("a", "b", [1], {}, {}, **options(arguments.ConfigOptions))
    session.combine_configs("a", "b", [1], [{}], [{}], **options(arguments.CombineOptions))
    with suppress(errors.ObjectNotReady):  # there is no run
        session.fit("a", "b", "c", 1, progress=False, **options(arguments.FitOptions))
    with suppress(errors.ObjectNotReady):
        session.fit_one(
            "a", "b", "c", 1, {}, {}, 1, progress=False, **options(arguments.FitOneOptions)
        )
    session.automl(
        "a", "b", "c", "d", [1], {}, {}, progress=False, **options(arguments.AutomlOptions)
    )
    session.hyperband_schedule("a", 9, **options(arguments.ScheduleOptions))
    session.explore_layers("a", 1, ["b"], "c", 2, hidden=[3], activation="d", seed=4)
    session.plan_fit("a", "b", 1, format="json", **options(arguments.PlanFitOptions))
    session.plan_of(1, "json")
    session.submit("a", "b", "c", 1, **options(arguments.FitOptions))
    session.submit_call("a", {"b": 1})
    session.wait(1)
    session.cancel_run(1)
    session.resume(1)
    session.vacuum_runs()
    session.drop_features("a")
    session.drop_run(1)
    session.write_outputs(1, "a")
    session.madlib_evaluate("a", "b", "c", **options(arguments.EvaluateOptions))
    session.madlib_predict("a", "b", "c", "d", "e", **options(arguments.PredictOptions))
    with suppress(IndexError):  # its answer names no run
        session.train("a", "b", progress=False, **options(arguments.TrainOptions))
    session.plan("a", "b", **options(arguments.TrainOptions))
    session.predict("a", "b", "c", owner="d", query="e")
    session.predict_row("a", {}, owner="b")
    session.evaluate("a", "b", ["c"], query="d")
    session.importance("a", "b")
    session.attribution("a", "b", "c")
    session.drift("a", "b")
    session.verify("a", 1)
    session.refresh("a", "b")
    session.deploy("a", 1)
    with suppress(TypeError):  # its answer is not the bytes of a file
        session.export_model("a", "a.model", version=1)
    session.import_model(__file__, "a")
    session.register("a", "b", 1)
    session.drop_model("a")
    session.predict_byom("a", 1, "b", "c", "d", "e", **options(arguments.ByomOptions))
    session.grant_usage("a")
    session.revoke_usage("a")
    session.set("a", 1)
    session.grant_predict("a", "b")
    session.revoke_predict("a", "b")
    session.help("a", "usage")
    session.gpu_configuration("a", "nvidia")
    session.versions()
    session.trainer_report("tensorflow")
    session.worker_report()


def functions() -> dict[str, set[str]]:
    """Return the arguments of each function for users, by name.

    If a function has two names, the short one is returned. If two functions share a name, the
    arguments of both are returned.
    """
    internal = {match[1] for match in INTERNAL.finditer(SCRIPTS)} | NOT_CALLED
    arguments_by_name: dict[str, set[str]] = {}
    for match in FUNCTION.finditer(SCRIPTS):
        arguments_by_name.setdefault(match[1], set()).update(ARGUMENT.findall(match[2]))
    return {
        name: names
        for name, names in arguments_by_name.items()
        if name not in internal and "madlib_keras" not in name
    }


def test_every_function_and_argument_can_be_reached() -> None:
    session = cerebro_db.connect("postgresql:///")
    session._sql = recorder = Recorder(session.engine)
    call_everything(session)
    assert recorder.called == functions()


@pytest.mark.parametrize("name", ["madlib_fit_multiple_model", "write_outputs", "python_version"])
def test_the_functions_are_found_in_the_scripts(name: str) -> None:
    assert name in functions()


METHODS = {
    name: method
    for name, method in inspect.getmembers(cerebro_db.Session, inspect.isfunction)
    if any(
        one.name == "options"
        for one in inspect.signature(inspect.unwrap(method)).parameters.values()
    )
}


@pytest.mark.parametrize("name", METHODS)
def test_help_lists_the_options_of_a_method(name: str) -> None:
    listed = pydoc.plain(pydoc.render_doc(METHODS[name]))
    (kind,) = re.findall(r"Unpack\[(\w+)\]", str(inspect.signature(inspect.unwrap(METHODS[name]))))
    for option, hint in get_type_hints(getattr(arguments, kind)).items():
        assert f"{option}: {inspect.formatannotation(hint)} = None" in listed


def test_a_misspelt_option_is_refused_before_the_server_is_called() -> None:
    session = cerebro_db.connect("postgresql:///")
    session._sql = recorder = Recorder(session.engine)
    with pytest.raises(TypeError) as caught:
        session.fit("a", "b", "c", 1, shedule="rotation")  # type: ignore[call-arg]
    assert isinstance(caught.value, errors.UnknownOption) and caught.value.sqlstate == "22023"
    assert "'shedule'" in caught.value.message and "'schedule'" in str(caught.value.hint)
    with pytest.raises(errors.UnknownOption) as caught:
        session.madlib_predict("a", "b", "c", "d", "e", zzz=1)  # type: ignore[call-arg]
    assert "mst_key, pred_type, use_gpus" in str(caught.value.detail) and caught.value.hint is None
    assert not recorder.called


CALLS = [
    ("predict", ("m", "t", "id", "x", "out"), {}),
    ("predict", ("m", "t", "id"), {"independent_varname": "x", "output_table": "o'ut"}),
    ("predict", ("m", "t", "id", "x", "out"), {"mst_key": 3, "pred_type": 0.5}),
    ("evaluate", ("m", "t", "out"), {"mst_key": 3}),
    ("evaluate", ("m",), {"test_table": "t", "output_table": "out"}),
]


@pytest.mark.parametrize("name, args, kwargs", CALLS)
def test_a_call_of_madlib_s_functions_by_their_former_names_is_refused_with_the_call_that_works(
    name: str, args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    session = cerebro_db.connect("postgresql:///")
    session._sql = recorder = Recorder(session.engine)
    with pytest.raises(TypeError) as caught:
        getattr(session, name)(*args, **kwargs)
    assert isinstance(caught.value, errors.UnknownOption) and not recorder.called
    call = re.fullmatch(r"Call (session\.\w+\(.*\))\.", str(caught.value.hint))
    assert call is not None
    eval(call[1], {"session": session})
    ((function, sent),) = recorder.called.items()
    assert function == f"madlib_{name}" and sent >= set(kwargs)


def test_one_column_may_divide_an_evaluation() -> None:
    session = cerebro_db.connect("postgresql:///")
    with mock.patch.object(session, "_sql") as sql:
        sql.query_cerebro.return_value = []
        session.evaluate("a", "b", group_by="region")
        session.evaluate("a", "b", ["region"])
    first, second = sql.query_cerebro.call_args_list
    assert first == second and first.kwargs["group_by"] == '"region"'
