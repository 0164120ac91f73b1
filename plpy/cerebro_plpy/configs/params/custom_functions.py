"""Functions of an administrator that parameters may name beside Keras' own; of each the backend
knows the digest only.

The digest stands in what a trainer is told of a program. So a program is another one where its
source is, and the segment that fetches the source sees whether it is still the one that the run
began with.
"""

from __future__ import annotations

from typing import Any

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass

Digests = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Functions:
    """The functions of an object table: names, their case kept, with the sha256 of their
    sources.
    """

    table: str
    digests: Digests = ()

    def digest(self, name: str) -> str:
        """The digest of a function; InvalidParameter where the table has none of that name."""
        found = dict(self.digests).get(name)
        if found is None:
            raise InvalidParameter(
                f"custom function '{name}' is not defined in object table '{self.table}'!",
                hint=f"It has {', '.join(known for known, _ in self.digests) or 'no functions'}; "
                "case matters. An administrator can add one by load_custom_function().",
            )
        return found

    def only(self, names: frozenset[str]) -> Functions:
        """Those of these names, in order."""
        return Functions(self.table, tuple((name, self.digest(name)) for name in sorted(names)))

    def to_json(self) -> dict[str, Any]:
        """As a trainer's program has it."""
        return {"table": self.table, "digests": dict(self.digests)}


class Unseen(Functions):
    """For texts that are read and not trained with: any name may be that of a function."""

    def digest(self, name: str) -> str:
        return ""


UNSEEN = Unseen("")


def functions_in_log(table: object, digests: object) -> Functions | None:
    """The functions that a run began with, as its log has them."""
    if not isinstance(table, str) or not isinstance(digests, dict) or not digests:
        return None
    return Functions(
        table, tuple(sorted((str(name), str(digest)) for name, digest in digests.items()))
    )


def changes(before: Functions | None, now: Functions | None) -> list[str]:
    """Names of functions that a run began with and that now are others, or gone."""
    current = dict(now.digests) if now else {}
    return [
        name for name, digest in (before.digests if before else ()) if current.get(name) != digest
    ]
