"""The rules that keep the parts apart: who imports whom, and what may stand in SQL. No server is
needed.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
import runpy
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from graphlib import TopologicalSorter
from inspect import signature
from pathlib import Path

import pytest
import sources
from sources import nodes, sql_files, tree

from cerebro_plpy import limits
from cerebro_plpy.api.entry import COUNTS_ARE_CHECKED
from cerebro_plpy.configs.params.frameworks import BACKENDS, list_frameworks
from cerebro_plpy.configs.run_spec import FitArguments
from cerebro_plpy.operations.fit.automl_arguments import AutomlArguments
from cerebro_plpy.operations.fit.fit_arguments import SINGLE_MODEL_ARGUMENTS
from cerebro_plpy.operations.fit.layer_probes import ProbeArguments
from cerebro_plpy.operations.train_arguments import TrainArguments
from cerebro_plpy.records import fields

ROOT = Path(__file__).parents[3]
# What a function takes, where it hands all on; the fields of FitArguments otherwise.
FIT = [each.name for each in fields(FitArguments)]
TRAIN = [each.name for each in fields(TrainArguments)]
TAKEN = {
    "automl": [each.name for each in fields(AutomlArguments)],
    "fit_one_model": [*SINGLE_MODEL_ARGUMENTS],
    "train": TRAIN, "plan_train": TRAIN,
    "explore_layers": [each.name for each in fields(ProbeArguments)],
}  # fmt: skip
PACKAGES = {
    "cerebro_plpy": ROOT / "plpy" / "cerebro_plpy",
    "cerebro_trainer": ROOT / "plpy" / "cerebro_trainer",
    "cerebro_db": ROOT / "cerebro_db",
}
# What is copied out of its package as a folder.
STANDALONE = PACKAGES["cerebro_db"] / "export" / "recipe"
# Modules of the trainer that the client has, too, by links: what they import must have no package's
# name.
LINKS = {
    PACKAGES["cerebro_db"] / "export" / "architecture": "models",
    PACKAGES["cerebro_db"] / "export" / "trees" / "model": "boosting/model",
}
SHARED = {path.resolve() for links in LINKS for path in links.iterdir() if path.is_symlink()}
MODULES = sorted(path for folder in PACKAGES.values() for path in folder.rglob("*.py"))

# The rooms of each package, bottom to top: each imports only what is below it. Modules at the root
# are rooms, too; what a package is started by and shows of itself stands above them all.
TOP = ("__init__", "__main__")
ORDER = {
    "cerebro_plpy": (
        "errors", "nouns", "records", "limits", "scheduling", "configs", "database",
        "trainer_client",
        "preprocessing", "packing", "platform", "tables", "run", "operations", "api",
    ),
    "cerebro_trainer": (
        "errors", "nouns", "process_isolation", "wire", "data", "models", "state", "programs",
        "boosting", "frameworks",
        "commands", "service", "fork_server",
    ),
    "cerebro_db": (
        "errors", "nouns", "optional_imports", "driver", "records", "result_set", "run_reader",
        "frames",
        "arguments", "options", "display", "sql_session", "export", "model_sources",
        "data_preparation", "named_models", "run_control", "plans", "administration", "session",
        "server", "check", "setup", "console", "dashboard", "demo", "commands", "cli",
    ),
}  # fmt: skip
# Those that use PL/Python's module, for statements and for errors.
TOUCHING_PLPY = {
    "cerebro_plpy.database.sessions.spi",
    "cerebro_plpy.database.sessions.sql_errors",
}
# Those that reach nothing but pure rooms: no database, no process, no clock.
PURE = {"errors", "nouns", "records", "limits", "scheduling", "configs"}
# What is no part of a pure room: the ways to the world, and what is not the same in each run.
IMPURE = {"os", "secrets", "select", "socket", "subprocess", "tempfile", "time"}

# The modules and packages that may import a library; a library that is not named here is free.
SOLE_IMPORTERS = {
    "psycopg2": {"cerebro_plpy.database.sessions.worker_sessions", "cerebro_db.driver"},
    "jax": {"cerebro_trainer.programs.jax"},
    "torch": {"cerebro_trainer.programs.torch"},
    "tensorflow": {"cerebro_trainer.programs.tensorflow"},
    "PIL": {"cerebro_trainer.data.images"},
    "lightgbm": {"cerebro_trainer.boosting.library"},
    "optuna": {"cerebro_trainer.commands.suggestions", "cerebro_db.dashboard.optuna"},
    "uvicorn": {"cerebro_db.dashboard.web_server"},
    "plpy": set(),
}

SQL_FUNCTION = re.compile(
    r"CREATE (?:OR REPLACE "
    r")?(?:FUNCTION|PROCEDURE)\s+(?P<name>[\w.@]+)\s*\((?P<arguments>[^;]*?)\)\s*"
    r"(?:RETURNS[^$;]*?)?LANGUAGE\s+plpython3u[^$;]*?AS\s+\$\$\n(?P<body>.*?)\n\$\$;",
    re.DOTALL,
)
IMPORT_LINE = re.compile(r"from cerebro_plpy\.api import (\w+)")
CALL_LINE = re.compile(r"return (\w+)\.(\w+)\(plpy, GD(, \*args)?\)")
ARGUMENT = re.compile(r"(?:^|,)\s*(\w+)\s+[a-z]")


def name_of(path: Path) -> str:
    package, folder = next((name, at) for name, at in PACKAGES.items() if path.is_relative_to(at))
    return ".".join((package, *path.relative_to(folder).with_suffix("").parts))


@cache
def imported(path: Path) -> frozenset[str]:
    """The full names of what a module imports anywhere in it; for `from a import b` also a.b, and
    what `import_module` is called with.
    """
    return frozenset(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            may = node.level == 1 and (path.parent == STANDALONE or path.resolve() in SHARED)
            assert not node.level or may, f"{path} imports relatively"
            module = (
                node.module
                if not node.level
                else ".".join(filter(None, (name_of(path.parent), node.module)))
            )
            assert module
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = (part.value for part in node.args if isinstance(part, ast.Constant))
            yield from (name for name in names if isinstance(name, str))


def arrows(package: str) -> dict[str, set[str]]:
    """Module to the modules of the same package that it imports."""
    own = {name_of(path): path for path in MODULES if path.is_relative_to(PACKAGES[package])}
    return {name: set(imported(path)) & set(own) for name, path in own.items()}


def sql_functions(file: Path | None = None) -> list[tuple[str, str, str]]:
    """Name, argument list and body of every PL/Python function in sql/, or in one file of it."""
    texts = [text for path, text in sql_files().items() if file in (None, path)]
    found = [
        match.group("name", "arguments", "body")
        for text in texts
        for match in SQL_FUNCTION.finditer(text)
    ]
    assert len(found) == sum(text.count("plpython3u") for text in texts), (
        "a function has another layout"
    )
    return [(name, arguments, body) for name, arguments, body in found]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_never_import_each_other(package: str) -> None:
    others = set(PACKAGES) - {package}
    for path in MODULES:
        if path.is_relative_to(PACKAGES[package]):
            assert not {name.partition(".")[0] for name in imported(path)} & others, path


@pytest.mark.parametrize("package", PACKAGES)
def test_arrows_make_no_circle(package: str) -> None:
    TopologicalSorter(arrows(package)).prepare()


def room(name: str) -> str:
    """The room of a module, by its full name."""
    return name.split(".")[1] if "." in name else ""


@pytest.mark.parametrize("package", ORDER)
def test_rooms_are_those_of_the_order(package: str) -> None:
    folder = PACKAGES[package]
    rooms = {
        path.stem
        for path in folder.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {*TOP} == set(ORDER[package])


@pytest.mark.parametrize("package", ORDER)
def test_no_arrow_points_upwards(package: str) -> None:
    """A module imports its own room's modules, and those of lower rooms."""
    floors = {room: floor for floor, room in enumerate((*ORDER[package], *TOP))}
    upwards = [
        f"{source} imports {target}"
        for source, targets in arrows(package).items()
        for target in targets
        if room(source) and room(target) and floors[room(target)] > floors[room(source)]
    ]
    assert not upwards


def drawn(package: str) -> dict[str, set[str]]:
    """Return the rooms of a package in docs/internals/how-it-works.md, each with those it knows."""
    text = (
        (ROOT / "docs" / "internals" / "how-it-works.md")
        .read_text()
        .partition("\n## The rooms\n")[2]
        .partition("\n## ")[0]
    )
    table = text.split("\n\n| room |")[1 + list(ORDER).index(package)]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    return {row[0].strip("| `"): set(re.findall(r"`(\w+)`", row[2])) for row in rows}


@pytest.mark.parametrize("package", ORDER)
def test_the_map_shows_the_rooms_and_their_arrows(package: str) -> None:
    known: dict[str, set[str]] = {name: set() for name in ORDER[package]}
    for source, targets in arrows(package).items():
        if room(source) not in ("", *TOP):
            known[room(source)] |= {room(target) for target in targets} - {"", room(source)}
    assert list(drawn(package)) == list(ORDER[package])
    assert drawn(package) == known


def test_files_that_a_change_touches_are_there() -> None:
    """Those that CONTRIBUTING.md names, from the root or from a room of the backend."""
    text = (
        (ROOT / "CONTRIBUTING.md")
        .read_text()
        .partition("## Where a new line belongs")[2]
        .partition("\n## ")[0]
    )
    named = set(re.findall(r"`([\w./-]+/[\w.-]+)`", text))
    assert len(named) > 30
    missing = [
        name
        for name in named
        if not any((at / name).exists() for at in (ROOT, PACKAGES["cerebro_plpy"]))
    ]
    assert not missing


def test_modules_that_the_client_shares_are_the_trainers() -> None:
    """By links in the clone; what is installed are two files."""
    shared = set()
    for links, folder in LINKS.items():
        names = {path.name for path in links.glob("*.py")} - {"__init__.py"}
        assert {links / name for name in names} == {
            path for path in links.iterdir() if path.is_symlink()
        }
        shared |= {(PACKAGES["cerebro_trainer"] / folder / name).resolve() for name in names}
    assert shared == SHARED


def test_what_is_copied_into_registered_models_needs_numpy_alone() -> None:
    for path in STANDALONE.glob("*.py"):
        others = {
            name.partition(".")[0]
            for name in imported(path)
            if not name.startswith("cerebro_db.export.recipe")
        }
        assert others <= {*sys.stdlib_module_names, "numpy"}, path


def test_pure_rooms_reach_pure_rooms_only() -> None:
    for path in PACKAGES["cerebro_plpy"].rglob("*.py"):
        if room(name_of(path)) in PURE:
            names = set(imported(path))
            assert not {name.partition(".")[0] for name in names} & IMPURE, path
            assert {room(name) for name in names if name.startswith("cerebro_plpy.")} <= PURE, path


# A name or a message of one platform, a statement of its own, or the question whether workers are
# bound to segments.
OF_ONE_PLATFORM = re.compile(r"greenplum|'spread\.|segment_id is (?:not )?None", re.IGNORECASE)
# What the text of a module has if its code has any of these: taking the comments away costs more
# than looking.
PERHAPS = re.compile("green|spread|segment_id", re.IGNORECASE)


def code(path: Path) -> str:
    """What a module does, without comments and docstrings."""
    found = ast.parse(path.read_text())
    for node in ast.walk(found):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            node.body[0] = ast.Pass()
    return ast.unparse(found)


def test_which_platform_it_is_only_adapters_know() -> None:
    """A third platform is a module beside the others, because nobody else asks which one this
    is.
    """
    asked: dict[bool, list[str]] = {True: [], False: []}
    for path in PACKAGES["cerebro_plpy"].rglob("*.py"):
        if not PERHAPS.search(path.read_text()):
            continue
        found = OF_ONE_PLATFORM.findall(code(path))
        asked[room(name_of(path)) == "platform"] += [f"{name_of(path)}: {text}" for text in found]
    assert len(asked[True]) > 20, "this test finds nothing any more"
    assert asked[False] == []


def test_statements_are_the_same_on_every_platform() -> None:
    """What one needs beside stands in files of its own, or in clauses that its adapter supplies."""
    folder = PACKAGES["cerebro_plpy"] / "database" / "queries"
    for path in folder.glob("*.sql"):
        text = re.sub(r"^--.*$", "", path.read_text(), flags=re.MULTILINE)
        assert ("DISTRIBUTED" in text or "gp_" in text) == (path.stem in ("greenplum", "spread")), (
            path
        )


def test_adapters_are_named_where_one_is_chosen() -> None:
    """They know nothing of each other either, and a call chooses its adapter where it enters."""
    for name in ("greenplum", "postgres"):
        package = f"cerebro_plpy.platform.{name}."
        importers = {
            module
            for module, targets in arrows("cerebro_plpy").items()
            if any(target.startswith(package) for target in targets)
        }
        outside = {module for module in importers if not module.startswith(package)}
        assert outside == {"cerebro_plpy.platform.detect"}
    choosers = {
        name
        for name, targets in arrows("cerebro_plpy").items()
        if "cerebro_plpy.platform.detect" in targets
    }
    assert choosers == {"cerebro_plpy.api.entry"}


def test_nobody_but_sql_names_the_interface() -> None:
    for name, targets in arrows("cerebro_plpy").items():
        if room(name) not in ("api", *TOP):
            assert not any(room(target) == "api" for target in targets), name


@pytest.mark.parametrize("library", SOLE_IMPORTERS)
def test_one_module_holds_each_library(library: str) -> None:
    importers = {
        name_of(path)
        for path in MODULES
        if library in {n.partition(".")[0] for n in imported(path)}
    }
    allowed = SOLE_IMPORTERS[library]
    assert {name for name in importers if not {name, name.rpartition(".")[0]} & allowed} == set()


def test_a_backend_starts_trainers_and_what_sweeps_after_them() -> None:
    starting = {"subprocess", "multiprocessing", "pty"}
    starters = {name_of(path) for path in MODULES if starting & set(imported(path))}
    assert {name for name in starters if name.startswith("cerebro_plpy.")} == {
        "cerebro_plpy.trainer_client.process.trainer_process",
        "cerebro_plpy.trainer_client.process.work_dirs",
        "cerebro_plpy.trainer_client.process.fork_server_client",
        "cerebro_plpy.trainer_client.process.installed_modules",
    }


def test_a_backend_loads_the_standard_library_only() -> None:
    allowed = sys.stdlib_module_names | {"cerebro_plpy", "psycopg2"}
    for path in PACKAGES["cerebro_plpy"].rglob("*.py"):
        assert {name.partition(".")[0] for name in imported(path)} <= allowed, path


def is_python_39(path: Path) -> bool:
    with suppress(SyntaxError):
        return bool(tree(path))
    return False


def test_a_backend_may_be_python_39(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [path for path in PACKAGES["cerebro_plpy"].rglob("*.py") if not is_python_39(path)] == []
    monkeypatch.setattr(sources, "BACKEND", tmp_path)
    (newer := tmp_path / "newer.py").write_text("match 1:\n    case 1: pass")
    assert not is_python_39(newer)


def test_a_trainer_without_a_framework_loads_none() -> None:
    """Packing needs numpy only, and must not wait for a framework."""
    probe = (
        "import sys, cerebro_trainer.__main__, cerebro_trainer.data.raw_rows;"
        "print(sorted({'keras', 'tensorflow', 'jax', 'torch'} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-I", "-c", probe], check=True, capture_output=True, text=True
    )
    assert told.stdout.strip() == "[]"


def test_two_modules_touch_plpy() -> None:
    for path in MODULES:
        touches = any(
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "plpy"
            for node in nodes(path)
        )
        assert not touches or name_of(path) in TOUCHING_PLPY, path


def test_plpy_is_no_package() -> None:
    """From the repository's root `import plpy` would find the folder; no test and no tool may run
    so.
    """
    assert not (ROOT / "plpy" / "__init__.py").exists()
    assert importlib.util.find_spec("plpy") is None


def test_the_framework_of_trainers_has_one_default() -> None:
    """In every function that trains or predicts; NULL means the same."""
    objects = (ROOT / "tests" / "upgrade" / "objects.txt").read_text()
    defaults = re.findall(r"^function .*\bbackend text( DEFAULT [^,)]*)?", objects, re.MULTILINE)
    assert len(defaults) > 8
    assert set(defaults) == {f" DEFAULT '{BACKENDS[0]}'::text"}
    assert list_frameworks(None, [1]) == list_frameworks(BACKENDS[0], [1])


def test_sql_bodies_are_two_lines() -> None:
    for name, arguments, body in sql_functions():
        lines = body.split("\n")
        assert len(lines) == 2, name
        loaded, call = IMPORT_LINE.fullmatch(lines[0]), CALL_LINE.fullmatch(lines[1])
        assert loaded and call and loaded[1] == call[1], name
        assert bool(call[3]) == bool(ARGUMENT.search(arguments)), name


def test_a_file_of_sql_has_a_module_of_its_own() -> None:
    """sql/62-byom.sql calls api/byom.py alone, which nobody else calls."""
    for path in sql_files():
        module = path.stem.partition("-")[2].replace("-", "_")
        called = {line[1] for _, _, body in sql_functions(path) if (line := CALL_LINE.search(body))}
        assert called <= {module}, path


def test_functions_in_sql_run_as_their_caller_under_a_path_of_their_own() -> None:
    """But for those that become a part of the query that calls them: all that they name is
    qualified instead.
    """
    written = [
        m.group()
        for text in sql_files().values()
        for m in re.finditer(
            r"CREATE OR REPLACE FUNCTION[^$]*?AS\s+(?:\$\$.*?\$\$)?", text, re.DOTALL
        )
        if "LANGUAGE sql" in m[0].partition("$$")[0]
    ]
    bare = [text for text in written if "SET search_path = pg_catalog, pg_temp" not in text]
    assert len(written) > 5 and len(bare) == 3
    for body in (text.partition("$$")[2] for text in bare):
        called = re.findall(r"([\w.]+)\(", body) + re.findall(r"::([\w.]+)", body)
        assert len(called) > 9 and all(
            name.startswith(("pg_catalog.", "cerebro.", "cerebro_internal.")) for name in called
        )
        assert not re.search(r"[-+*/<>=~|&^%!#]", re.sub(r"::", "", body)), (
            "an operator would be looked up, too"
        )


def test_what_runs_as_its_owner_is_ten_functions_with_a_fixed_path() -> None:
    """That of a granted table, which is its owner's, those that remove what owners have marked, the
    one that fills a trainer with a granted model, those that give runs places and configurations,
    and the one that counts processor time."""
    found = [
        line for text in definer_texts() for line in text.splitlines() if "SECURITY DEFINER" in line
    ]
    fixed = "PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
    removing, filling = (
        f"LANGUAGE plpgsql VOLATILE {fixed} AS $$",
        f"LANGUAGE plpython3u STABLE {fixed} AS $$",
    )
    queueing = removing.replace("VOLATILE", "VOLATILE STRICT")
    counting = filling.replace("STABLE", "VOLATILE")
    assert found == [
        *[removing] * 3,
        filling,
        *[queueing] * 4,
        counting,
        f"LANGUAGE sql VOLATILE {fixed}",
    ]


def definer_texts() -> list[str]:
    """Each statement that makes a function which runs as its owner, up to the next object."""
    queries = sorted((PACKAGES["cerebro_plpy"] / "database" / "queries").glob("*.sql"))
    texts = [*sql_files().values(), *(path.read_text() for path in queries)]
    made = [part for text in texts for part in re.split(r"(?=CREATE (?:OR REPLACE )?\w+ )", text)]
    return [part.partition("COMMENT ON")[0] for part in made if "SECURITY DEFINER" in part]


def test_what_runs_as_its_owner_decides_by_no_name_of_a_role_and_locks_no_table() -> None:
    """As whom it was called nobody knows there, who logged in may be a pooler, and what it locks
    others wait for.
    """
    assert len(definer_texts()) == 10
    for text in definer_texts():
        code = re.sub("--.*", "", text)
        assert not re.search(
            r"session_user|current_user|current_setting|\bLOCK\b|FOR UPDATE|FOR SHARE", code
        ), text


def entry_points() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Each function of SQL in Python: its name, its arguments, and what it calls."""
    for name, arguments, body in sql_functions():
        call = CALL_LINE.search(body)
        assert call, name
        module = tree(PACKAGES["cerebro_plpy"] / "api" / f"{call[1]}.py")
        defined = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
        assert call[2] in defined, f"{name} calls {call[1]}.{call[2]}"
        yield name, arguments, defined[call[2]]


def test_sql_calls_functions_with_the_arguments_that_they_take() -> None:
    for name, arguments, function in entry_points():
        parameters = [argument.arg for argument in function.args.args][2:]
        if function.args.vararg:
            taken = TAKEN.get(function.name, FIT)
            parameters += [argument for argument in taken if argument != "single"]
        if name != "delete_custom_function":  # two functions: by id, and by name
            assert parameters == ARGUMENT.findall(arguments), name


LARGEST = {"smallint": (1 << 15) - 1, "integer": limits.INTEGER, "bigint": limits.BIGINT}


def test_counts_of_calls_are_checked_before_anything_else() -> None:
    """By the name that they have in SQL; a function that hands all on has a record of arguments
    checked.
    """
    bounded = set()
    for name, arguments, body in sql_functions():
        call = CALL_LINE.search(body)
        assert call, name
        function = getattr(importlib.import_module(f"cerebro_plpy.api.{call[1]}"), call[2])
        taken = signature(function).parameters
        for argument, kind in re.findall(r"(\w+)\s+(smallint|integer|bigint)\b", arguments):
            limit = limits.limit_of(name.rpartition(".")[2], argument)
            if (
                limit
                and limit.maximum < LARGEST[kind]
                and "arguments" not in taken
                and call[2] != "plan_fit"
            ):
                assert argument in taken and hasattr(function, COUNTS_ARE_CHECKED), (
                    f"{name}: {argument}"
                )
                bounded.add(name)
    assert len(bounded) > 8, "this test finds nothing any more"


def test_functions_that_sql_calls_report_their_errors() -> None:
    """Outside of all other decorators, so that an error has left no other frame."""
    for name, _arguments, function in entry_points():
        decorators = [ast.unparse(each) for each in function.decorator_list]
        assert decorators[:1] == ["report_errors"], name


def test_modules_stay_small_and_say_why_they_exist() -> None:
    assert len(MODULES) > 400, "this test finds nothing any more"
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 500, path
        assert ast.get_docstring(tree(path)), path
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert node.end_lineno is not None, path
                assert node.end_lineno - node.body[0].lineno < 60, f"{path}: {node.name}"


def test_no_module_counts_the_folders_above_it() -> None:
    """A module that moves would take another folder for its own; a package knows where it lies."""
    counting = [
        name_of(path) for path in MODULES if re.search(r"__file__\)\.parents\[", path.read_text())
    ]
    assert counting == []


def test_a_folder_shows_at_most_twenty_modules() -> None:
    """But for the interface, which has a module for each file of sql/."""
    counts = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    del counts[PACKAGES["cerebro_plpy"] / "api"]
    assert {folder: count for folder, count in counts.items() if count > 20} == {}


def test_what_is_installed_are_the_folders() -> None:
    """setuptools is told each folder by name; one that is forgotten would be missing in an
    installation.
    """
    text = (ROOT / "pyproject.toml").read_text()
    packages = re.search(r"\npackages = \[(.*?)\]", text, re.DOTALL)
    assert packages
    told = set(re.findall(r'"([\w.]+)"', packages[1]))
    folders = {
        name_of(path).removesuffix(".__init__") for path in MODULES if path.name == "__init__.py"
    }
    assert told == folders


def test_the_version_stands_once() -> None:
    """PGXN wants a copy in META.json; nothing else has one.

    Until the changelog has its date, the release is not stable, and the package a development one.
    """
    version = re.search(r"default_version = '(.+)'", (ROOT / "cerebro_db.control").read_text())
    meta = json.loads((ROOT / "META.json").read_text())
    assert version and meta["version"] == meta["provides"]["cerebro_db"]["version"] == version[1]
    heading = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    package_version = runpy.run_path(str(ROOT / "assembly.py"))["package_version"]()
    assert heading
    if heading[1] == f"[Unreleased] {version[1]}":
        expected = ("unstable", f"{version[1]}.dev0")
    else:
        assert re.fullmatch(rf"\[{re.escape(version[1])}\] - \d{{4}}-\d\d-\d\d", heading[1])
        expected = ("stable", version[1])
    assert (meta["release_status"], package_version) == expected
