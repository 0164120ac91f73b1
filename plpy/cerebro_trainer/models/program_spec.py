"""What the backend says about a program: the architecture and how it is compiled, as frozen
records.

Two configs whose specs have the same key share one program: one model, one optimizer, one trace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cerebro_trainer.models.hyperparameter_variables import Split, split
from cerebro_trainer.wire.fields import integer, items, record, text


@dataclass(frozen=True)
class Target:
    """One dependent column: one-hot with so many classes, or floats (classes 0)."""

    classes: int


@dataclass(frozen=True)
class ProgramSpec:
    """An architecture as the user stored it, its compile parameters, and its targets by position.

    `dtype_policy` replaces that of all layers; None leaves what the architecture says. `sources`
    are those of the custom functions that `compile` names. Where there is a `cut`, rows are what
    that layer gives, and what lies behind it is run.
    """

    architecture: dict[str, Any]
    compile: dict[str, Any]
    targets: tuple[Target, ...]
    dtype_policy: str | None = None
    sources: dict[str, str] = field(default_factory=dict)
    cut: str | None = None

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> ProgramSpec:
        """Read the `program` object of a request."""
        program = record(header, "program")
        sources = record(program, "sources") if "sources" in program else {}
        return cls(
            record(program, "architecture"),
            record(program, "compile"),
            tuple(_target(entry) for entry in items(program, "targets")),
            None if program.get("dtype_policy") is None else text(program, "dtype_policy"),
            {name: text(sources, name) for name in sources},
            None if program.get("cut") is None else text(program, "cut"),
        )

    @cached_property
    def split(self) -> Split:
        """The program without the numbers that are variables, and these numbers."""
        return split(self.architecture, self.compile.get("optimizer"))

    @cached_property
    def architecture_hash(self) -> str:
        """sha256 of the architecture without such numbers, in canonical JSON."""
        return _digest(self.split.architecture)

    @cached_property
    def key(self) -> str:
        """Equal for all specs that differ in nothing but such numbers."""
        arguments = self.compile | self.split.optimizer
        classes = [target.classes for target in self.targets]
        return _digest(
            [self.split.architecture, arguments, classes, self.dtype_policy, self.sources, self.cut]
        )


def _target(entry: Mapping[str, Any]) -> Target:
    if text(entry, "kind", choices=("onehot", "float")) == "float":
        return Target(0)
    return Target(integer(entry, "classes", minimum=1))


def _digest(value: object) -> str:
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
