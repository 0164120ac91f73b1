"""The command line without a database: imports, completion in a shell, and exit codes."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cerebro_db.arguments import TrainOptions
from cerebro_db.cli import app
from cerebro_db.commands.argument_help import read_argument_help
from cerebro_db.commands.completion import _filter_names
from cerebro_db.commands.exits import Exit
from cerebro_db.commands.models import train
from cerebro_db.server import provision
from cerebro_plpy.configs.templates.registry import TEMPLATES

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "command-line.md"
HEAVY = {"sqlalchemy", "psycopg2", "matplotlib", "numpy", "keras", "pandas", "optuna"}
PROBE = """
import sys
from cerebro_db.cli import main
for words in {lines!r}:
    sys.argv = ["cerebro-db", *words, "--help"]
    try:
        main()
    except SystemExit as error:
        assert not error.code, error.code
print("imported:", *sorted({heavy!r} & set(sys.modules)))
"""


def test_help_imports_nothing_heavy() -> None:
    """Of all commands, of one, and of a group."""
    program = PROBE.format(lines=[[], ["train"], ["plot"], ["server"]], heavy=HEAVY)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1].split() == ["imported:"]


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text()
    names = {
        name
        for command in app.registered_commands
        if (name := command.name or getattr(command.callback, "__name__", None))
    }
    groups = {str(group.name) for group in app.registered_groups}
    assert {"plot", "watch", "train"} <= names
    assert not [name for name in names | groups if f"`{name}" not in text]


def test_exit_codes_are_those_of_the_page() -> None:
    (row,) = re.findall(r"\*\*Exit codes\.\*\*(.*?)\n\n", PAGE.read_text(), re.DOTALL)
    assert [int(code) for code in re.findall(r"(?:^|; |\s)(\d+): ", row)] == [0, *Exit]


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["plot", "1", "--kind", "curves", "-o", "x.gif"], "ends neither in"),
        (["plot", "ups", "--kind", "parallel", "-o", "x.png"], "RUN|MODEL: 'ups' is not the id"),
        (["plot", "ups", "--kind", "confusion", "-o", "x.png"], "--source TABLE"),
        (["plot", "1", "--kind", "lanes", "-o", "x.png", "--source", "t"], "takes no table"),
        (["plot", "1", "--kind", "pie", "-o", "x.png"], "pie"),
        (["check", "postgresql://"], "unexpected"),
        (["train", "t", "y", "--types", "[1]"], "is not a JSON object"),
        (["train", "t", "y", "--search-params", "null"], "is not a JSON object"),
        (["predict", "m", "t", "-o", "/nowhere/p.csv"], "there is no folder /nowhere"),
        (["predict", "m", "t", "-o", "/"], "/ exists already"),
        (["plot", "1", "--kind", "curves", "-o", "/nowhere/p.png"], "there is no folder /nowhere"),
    ],
)
def test_wrong_usage_fails_before_the_database_is_opened(arguments: list[str], word: str) -> None:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "300", "PGHOST": "/nowhere"})
    assert result.exit_code == Exit.USAGE and result.stdout == "" and word in result.stderr


def test_ctrl_c_has_the_exit_code_of_a_cancelled_command() -> None:
    waiting = typer.Typer()

    @waiting.command()
    def wait() -> None:
        raise KeyboardInterrupt

    assert CliRunner().invoke(waiting, []).exit_code == Exit.CANCELLED


@given(st.lists(st.text(max_size=8)), st.text(max_size=2))
def test_a_name_that_a_shell_interprets_is_not_offered(names: list[str], incomplete: str) -> None:
    offered_names = _filter_names(
        [*names, "up$(reboot)", "a b", "-x", "a;b", "a\nb", "~", "safe-name.2"], incomplete
    )
    assert all(
        re.fullmatch(r"[\w.][\w.-]*", name) and name.startswith(incomplete)
        for name in offered_names
    )
    assert _filter_names(["safe-name.2"], "safe") == ["safe-name.2"]


def test_without_a_database_nothing_is_offered_or_printed() -> None:
    script = Path(sys.executable).with_name("cerebro-db")
    environment = {
        "_CEREBRO_DB_COMPLETE": "complete_bash",
        "COMP_WORDS": "cerebro-db leaderboard ",
        "COMP_CWORD": "2",
    }
    result = subprocess.run(
        [script], capture_output=True, text=True, env={**environment, "PGHOST": "/nowhere"}
    )
    assert (result.stdout.strip(), result.stderr) == ("", "")


ON_A_TERMINAL = """
import os, pty, sys
from cerebro_db.commands import server
from cerebro_db.server import embedded_server
class Served:
    data = "data"
    def __init__(self, *_): pass
    def start(self): return sys.argv[1]
    def status(self):
        return embedded_server.Status(url=sys.argv[1], pid=7, data="data", log="log")
embedded_server.EmbeddedServer = Served
server.app(sys.argv[2:], standalone_mode=False)
"""


@pytest.mark.parametrize("command", ["start", "status"])
def test_the_url_can_be_pasted_into_a_shell(command: str) -> None:
    """From a terminal; a program that reads it gets the bare URL."""
    url = provision.make_url(Path("/run/a b"), 5516)
    assert "&" not in url, "a program may print it for a shell, too"
    words = [sys.executable, "-c", ON_A_TERMINAL, url, command]
    piped = subprocess.run(words, capture_output=True, text=True, check=True)
    assert piped.stdout.split()[-1] == url
    reader, terminal = os.openpty()
    subprocess.run(words, stdout=terminal, stderr=subprocess.PIPE, check=True)
    os.close(terminal)
    shown = ""
    while True:
        try:
            shown += os.read(reader, 4096).decode()
        except OSError:  # nobody writes to the terminal any more
            break
    os.close(reader)
    pasted = shown.split()[-1]
    echoed = subprocess.run(
        ["sh", "-c", f"printf %s {pasted}"], capture_output=True, text=True, check=True
    )
    assert echoed.stdout == url


def test_options_that_are_arguments_of_sql_have_its_help() -> None:
    declarations = runpy.run_path(str(PAGE.parents[2] / "assembly.py"))["declarations"]()
    (declared,) = (entry for entry in declarations if entry.name == "cerebro.train")
    shown = read_argument_help("cerebro.train")
    assert (
        set(shown)
        == {argument.name for argument in declared.arguments}
        > set(get_type_hints(TrainOptions))
    )
    for argument in declared.arguments:
        help_text = shown[argument.name]
        plain = argument.help.replace("`", "").removeprefix("TRUE: ").lower()
        assert plain.startswith(help_text.lower().partition(" default: ")[0][:20])
        assert not re.search(r"\]\(|`|NULL|\.\.|[^.]$", help_text), help_text
    result = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "300"})
    for name in get_type_hints(TrainOptions):
        assert shown[name][:60] in result.output
    narrow = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "80"})
    assert "…" not in narrow.output
    for name, value in (("models", "realmlp"), ("search", "'asha'"), ("backend", "'jax'")):
        assert value in shown[name], "an option of words names some"


@pytest.mark.parametrize("budget", ["5", " 300 "])
def test_a_time_without_a_unit_is_refused(budget: str) -> None:
    result = CliRunner().invoke(
        app, ["train", "t", "y", "--budget", budget], env={"COLUMNS": "300"}
    )
    assert result.exit_code == Exit.USAGE
    assert "no unit" in result.output and f"{budget.strip()} minutes" in result.output


def test_the_example_of_train_is_a_call_that_works() -> None:
    """Its options exist, and its templates are some."""
    _, _, example = str(train.__doc__).partition("For example: cerebro-db ")
    words = shlex.split(example)
    command = typer.main.get_command(app).commands[words[0]]  # type: ignore[attr-defined]
    context = command.make_context(words[0], words[1:])
    assert list(context.params["names"]) == ["flowers", "species"]
    assert context.params["models"] and set(context.params["models"]) <= {
        template.name for template in TEMPLATES
    }
