"""One module of the client listens and opens browsers, so that whatever a command serves stands
behind the gate.

That the module puts all that it serves behind the gate is tested in tests/unit/client/test_gate.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import nodes

CLIENT = Path(__file__).parents[3] / "cerebro_db"
SERVING = CLIENT / "dashboard" / "web_server.py"
SERVERS = {
    "aiohttp", "bokeh", "cheroot", "dash", "flask", "gradio", "gunicorn", "http.server",
    "hypercorn", "panel",
    "socketserver", "tornado", "twisted", "uvicorn", "waitress", "werkzeug", "wsgiref.handlers",
    "wsgiref.simple_server", "xmlrpc.server",
}  # fmt: skip
LISTENING = {
    "create_datagram_endpoint", "create_server", "create_unix_server", "listen", "make_server",
    "run_app", "run_server",
    "run_simple", "serve_forever", "start_server", "start_unix_server",
}  # fmt: skip
BROWSERS = {"webbrowser"}
IMPORTERS = {"import_library", "import_module", "__import__"}


def find_serving(path: Path) -> Iterator[str]:
    """Yield what in a module listens for connections, or opens a browser."""
    for node in nodes(path):
        names = list[str]()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in LISTENING:
                yield called
            if called in IMPORTERS and isinstance(argument := node.args[0], ast.Constant):
                names = [str(argument.value)]
        yield from (name for name in names if is_listed(name))


def is_listed(name: str) -> bool:
    """Return True if a module is a server's or a browser's, or is part of one that is."""
    return any(name == listed or name.startswith(f"{listed}.") for listed in SERVERS | BROWSERS)


def test_one_module_listens_and_opens_browsers() -> None:
    found = {path: names for path in CLIENT.rglob("*.py") if (names := {*find_serving(path)})}
    assert found == {SERVING: {"create_server", "uvicorn", "webbrowser"}}


@pytest.mark.parametrize(
    "line",
    [
        "import uvicorn",
        "from http.server import HTTPServer",
        "from http import server",
        "pages.run_server(runs, port=1)",
        "import_library('wsgiref.simple_server', 'dashboard').make_server('', 1, app)",
        "import_module('flask')",
        "place.listen()",
        "await asyncio.start_server(answer)",
        "import webbrowser",
    ],
)
def test_such_lines_would_be_found(tmp_path: Path, line: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"async def work():\n    {line}\n")
    assert [*find_serving(module)]
