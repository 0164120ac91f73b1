"""The states of a session in the trainer: the current one, and previous ones to be stored.

A worker stores the state of a visit while the next visit trains. The values that the next state
replaces are kept as a snapshot, which another thread may send.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from cerebro_trainer.commands.frozen_weight_cache import FrozenWeightCache
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.programs.learner import Learner
from cerebro_trainer.programs.program import Program, require_network
from cerebro_trainer.state import averaging, readers, serialization
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.state.readers import Origin, ReportOrigin
from cerebro_trainer.state.serialization import Progress
from cerebro_trainer.wire.fields import Header, if_present, integer, integers, record, text
from cerebro_trainer.wire.frames import Arrays, Message, Messages
from cerebro_trainer.wire.streams import Reader

SOURCES = ("new", "kept", "chunks", "averaged", "weights", "weights_of_chunks", "warm")
"""Sources of a state in a request."""


NETWORK_SOURCES = ("averaged", "weights")
"""Sources of weights, which only networks have."""


class CurrentState(NamedTuple):
    """The state in a learner's variables, with the backend's name for it."""

    key: str
    learner: Learner


class Snapshot(NamedTuple):
    """The values of a state at one moment, which do not change with their learner."""

    key: str
    values: Arrays
    layout: Layout
    header: bytes

    @classmethod
    def take(cls, state: CurrentState, epochs: int, base_digest: str | None) -> Snapshot:
        """Take a snapshot of a state.

        Args:
            epochs: epochs that the state was trained.
            base_digest: digest of its frozen weights.
        """
        learner = state.learner
        progress = Progress(learner.step, epochs)
        header = serialization.build_header(learner.layout, progress, base_digest)
        return cls(state.key, learner.read(), learner.layout, header)

    def send(self, header: Header) -> Messages:
        """Yield the chunks of the part that a request names, then their count and size."""
        part = if_present(header, "part", partial(text, choices=serialization.PARTS)) or "whole"
        chunk_bytes = integer(header, "chunk_bytes", minimum=1)
        nbytes = 0
        count = 0
        for chunk in serialization.dump(self.values, self.layout, self.header, chunk_bytes, part):
            nbytes += sum(map(len, chunk))
            count += 1
            yield Message({"more": True}, *chunk)
        yield Message({"ok": {"bytes": nbytes, "chunks": count}})


class SessionStates:
    """The states of a session."""

    def __init__(self) -> None:
        self.frozen_weights = FrozenWeightCache()
        # History of the state that was loaded last
        self.origin = Origin(0, is_complete=False)
        self.current: CurrentState | None = None  # None also for a state that may not be read
        self._unstored: Mapping[str, Snapshot] = {}

    def load(self, learner: Learner, source: str, request: Mapping[str, Any]) -> Reader | None:
        """Make the state of a request the state of a learner.

        Returns:
            A reader of the state if its bytes follow; None if the state is loaded.
        """
        header = record(request, "state")
        if source == "kept":
            key = text(header, "key")
            if self.current != CurrentState(key, learner):
                raise self._missing_state_error(key)
            return None
        if source in NETWORK_SOURCES:
            require_network(learner, source)
        self.current = None
        base_digest = None
        if source == "chunks":
            base_digest = if_present(header, "base", text)
        if base_digest is None:
            self.frozen_weights.invalidate(learner)
        else:
            self.frozen_weights.copy_to(learner, base_digest)
        layout = learner.layout
        if source == "chunks":
            return readers.read_state(layout, learner.assign, self._set_origin, base_digest)
        if source == "averaged":
            shares = integers(header, "shares")
            return averaging.read_mean(layout, learner.assign, self._set_origin, shares)
        seed = integer(header, "seed")
        self.origin = Origin(0, is_complete=False)
        if source in ("weights", "weights_of_chunks"):
            learner.reset_non_weights(seed)
            if source == "weights":
                return readers.read_flat_weights(layout, learner.assign)
            return readers.read_weights(layout, learner.assign, self._set_origin)
        learner.write(learner.create_initial_state(seed))
        if source == "warm" and not isinstance(learner, Program):
            return _read_same_spec(learner, self._set_origin)
        if source == "warm":
            return readers.read_warm_start(layout, learner.assign, self._set_origin)
        return None

    def _set_origin(self, origin: Origin) -> None:
        self.origin = origin

    def get_current(self, key: str) -> Snapshot | None:
        """Return the current state if it has this name."""
        if self.current is None or self.current.key != key:
            return None
        return self._take_snapshot(self.current)

    def get_unstored(self, key: str) -> Snapshot:
        """Return a previous state; another thread may call this during a job.

        Raises:
            RequestError: there is no such state.
        """
        snapshot = self._unstored.get(key)
        if snapshot is None:
            raise self._missing_state_error(key)
        return snapshot

    def add_unstored(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Keep the snapshots of several states until `retain` is called without their names."""
        self._unstored = {**self._unstored, **snapshots}

    def retain(self, keys: Collection[str]) -> None:
        """Keep the states with these names, which are still to be stored, and no others."""
        retained = {key: snapshot for key, snapshot in self._unstored.items() if key in keys}
        current = self.current
        if current and current.key in keys and current.key not in retained:
            retained[current.key] = self._take_snapshot(current)
        self._unstored = retained

    def clear(self) -> None:
        """Release all states."""
        self.current = None
        self._unstored = {}
        self.frozen_weights.clear()

    def _take_snapshot(self, state: CurrentState) -> Snapshot:
        base_digest = self.frozen_weights.find_digest(state.learner)
        return Snapshot.take(state, self.origin.epochs, base_digest)

    def _missing_state_error(self, key: str) -> RequestError:
        current = "no state" if self.current is None else f"state {self.current.key!r}"
        return RequestError(
            f"state {key!r} is not held, but {current}",
            sqlstate="55000",
            hint="Send the state's chunks.",
        )


def _read_same_spec(learner: Learner, report_origin: ReportOrigin) -> Reader:
    """Read a state that another run has left for an equal architecture.

    Raises:
        ConfigError: the state belongs to another architecture.
    """
    try:
        yield from readers.read_state(learner.layout, learner.assign, report_origin)
    except ConfigError as error:
        raise ConfigError(
            error.message,
            sqlstate="0A000",
            hint="Boosted trees continue only states of an equal configuration.",
        ) from error
