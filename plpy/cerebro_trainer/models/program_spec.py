"""The specification of a program that the backend sends: an architecture and compile parameters.

Two configs whose specs have the same key share one program: one model, one optimizer, one trace.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property

from cerebro_trainer.models.hyperparameter_variables import Split, split_hyperparameters
from cerebro_trainer.models.layer_arguments import Node
from cerebro_trainer.wire.fields import Header, if_present, integer, items, optional, record, text


@dataclass(frozen=True)
class Target:
    """A dependent column."""

    classes: int  # of a one-hot encoded column; 0 for floats


@dataclass(frozen=True)
class ProgramSpec:
    """The specification of a program."""

    architecture: Node  # as the user stored it
    compile: Node
    targets: tuple[Target, ...]
    dtype_policy: str | None = None  # of all layers; None keeps those of the architecture
    sources: dict[str, str] = field(default_factory=dict)  # of custom functions in `compile`
    # Rows contain the activations of this layer, and the program is the head behind it
    cut: str | None = None

    @classmethod
    def from_header(cls, header: Header) -> ProgramSpec:
        """Read the object `program` of a request."""
        program = record(header, "program")
        sources = if_present(program, "sources", record) or {}
        return cls(
            architecture=record(program, "architecture"),
            compile=record(program, "compile"),
            targets=tuple(_read_target(entry) for entry in items(program, "targets")),
            dtype_policy=optional(program, "dtype_policy", text),
            sources={name: text(sources, name) for name in sources},
            cut=optional(program, "cut", text),
        )

    @cached_property
    def split(self) -> Split:
        """The program without the numbers that become variables, and these numbers."""
        return split_hyperparameters(self.architecture, self.compile.get("optimizer"))

    @cached_property
    def architecture_hash(self) -> str:
        """The sha256 of the architecture without such numbers, as canonical JSON."""
        return _compute_hash(self.split.architecture)

    @cached_property
    def key(self) -> str:
        """A key that is equal for specs that differ only in such numbers."""
        arguments = self.compile | self.split.optimizer
        classes = [target.classes for target in self.targets]
        return _compute_hash(
            [self.split.architecture, arguments, classes, self.dtype_policy, self.sources, self.cut]
        )


def _read_target(entry: Header) -> Target:
    if text(entry, "kind", choices=("onehot", "float")) == "float":
        return Target(0)
    return Target(integer(entry, "classes", minimum=1))


def _compute_hash(value: object) -> str:
    canonical_json = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical_json.encode()).hexdigest()
