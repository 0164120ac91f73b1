"""Custom functions of an administrator, which parameters may name beside those of Keras.

The backend uses only their digests. The digest of a source is a part of the trainer's program, so
programs with different sources differ. The segment that fetches the source checks that it is still
the one that the run began with.
"""

from __future__ import annotations

from typing import Any

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass

Digests = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Functions:
    """The functions of an object table."""

    table: str
    digests: Digests = ()  # names, in their original case, with the sha256 of the sources

    def digest(self, name: str) -> str:
        """Return the digest of a function.

        Raises:
            InvalidParameter: the table does not have the function.
        """
        digest = dict(self.digests).get(name)
        if digest is None:
            names = ", ".join(function for function, _ in self.digests)
            raise InvalidParameter(
                f"custom function '{name}' is not defined in object table '{self.table}'!",
                hint=f"It has {names or 'no functions'}; "
                "case matters. An administrator can add one by load_custom_function().",
            )
        return digest

    def select(self, names: frozenset[str]) -> Functions:
        """Return the functions of these names, sorted."""
        return Functions(self.table, tuple((name, self.digest(name)) for name in sorted(names)))

    def to_json(self) -> dict[str, Any]:
        """Return the functions as a part of the trainer's program."""
        return {"table": self.table, "digests": dict(self.digests)}


class AnyFunctions(Functions):
    """Functions for texts that are only parsed: any name may be that of a function."""

    def digest(self, name: str) -> str:
        return ""


ANY_FUNCTIONS = AnyFunctions("")


def read_logged_functions(table: object, digests: object) -> Functions | None:
    """Return the functions that a run began with, from its log."""
    if not isinstance(table, str) or not isinstance(digests, dict) or not digests:
        return None
    return Functions(
        table, tuple(sorted((str(name), str(digest)) for name, digest in digests.items()))
    )


def list_changed_functions(original: Functions | None, current: Functions | None) -> list[str]:
    """Return the names of functions whose source has changed since a run began, or is gone."""
    if original is None:
        return []
    current_digests: dict[str, str] = {}
    if current is not None:
        current_digests.update(current.digests)
    return [name for name, digest in original.digests if current_digests.get(name) != digest]
