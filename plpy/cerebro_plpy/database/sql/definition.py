"""The definition of a view, policy or function that a SELECT evaluates, as a parse tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cerebro_plpy.records import dataclass

APPLICATION_NAME = "application_name"
# Functions of PostgreSQL whose values another session of the same caller does not share.
SESSION_FUNCTIONS = (
    "currval",
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "inet_server_port",
    "lastval",
    "pg_backend_pid",
    "pg_my_temp_schema",
)
SETTING = "current_setting"
LITERAL_NAME = re.compile(
    rf"\b{SETTING}\s*\(\s*E?'((?:[^']|'')+)'\s*(?:::\s*[\w.]+\s*)?(?=[,)])", re.IGNORECASE
)
NAME_IN_SOURCE = re.compile(rf"\b{SETTING}\s*\(", re.IGNORECASE)
CALL = "funcid {oid} "  # calls a function, also one behind an operator
LITERAL_ARGUMENT = (
    r":funcid (?:{oids}) [^(]*:args \(\{{CONST [^\[{{}}]*:constvalue \d+ \[([-\d ]+)\]"
)
HEADER_BYTES = 4  # before a text constant of a parse tree


@dataclass(frozen=True)
class Definition:
    """A view, policy or function that a SELECT evaluates, or a temporary table that it reads.

    All fields but `calls` are columns of the statement behind.definitions.
    """

    kind: str
    name: str  # with its kind, as in an error
    tree: str  # the parse tree, or ''
    source: str  # the body of a function that is not standard SQL, else ''
    function: int | None  # the oid of a function
    user_name: str | None  # the view or policy that calls the function
    calls: Mapping[str, Sequence[int]]  # oids of PostgreSQL's functions by name

    @property
    def names(self) -> list[str]:
        """Return the names of settings that are literals in the definition."""
        pattern = LITERAL_ARGUMENT.format(oids="|".join(map(str, self.calls[SETTING])))
        in_tree = [_decode_text(match[1]) for match in re.finditer(pattern, self.tree)]
        in_source = LITERAL_NAME.findall(self.source)
        return in_tree + [name.replace("''", "'") for name in in_source]

    @property
    def computes_names(self) -> bool:
        """Return True if the name of a setting in the definition is not a literal."""
        calls = sum(self.tree.count(CALL.format(oid=oid)) for oid in self.calls[SETTING])
        return calls + len(NAME_IN_SOURCE.findall(self.source)) > len(self.names)

    @property
    def session_values(self) -> list[str]:
        """Return the session state that the definition reads, as SQL expressions."""
        functions = [f"{name}()" for name in SESSION_FUNCTIONS if self._calls_function(name)]
        if APPLICATION_NAME in map(str.lower, self.names):
            functions.insert(0, APPLICATION_NAME)
        return functions

    def _calls_function(self, name: str) -> bool:
        if any(CALL.format(oid=oid) in self.tree for oid in self.calls.get(name, ())):
            return True
        return re.search(rf"\b{name}\s*\(", self.source, re.IGNORECASE) is not None


def _decode_text(datum: str) -> str:
    """Return the text of a constant of a parse tree, which contains it as signed bytes.

    >>> _decode_text("28 0 0 0 97 46 98")
    'a.b'
    """
    numbers = [int(number) % 256 for number in datum.split()]
    return bytes(numbers[HEADER_BYTES:]).decode("utf-8", "replace")
