"""The commands of a trainer, and what happens to errors.

Requests without a reply stream. An error in one is kept back, those that follow are passed over,
and the next request that has a reply is answered with the error.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from cerebro_trainer.commands import gpus, prediction_columns
from cerebro_trainer.commands.job_handler import Work
from cerebro_trainer.commands.program_cache import ProgramCache
from cerebro_trainer.data import recipe_values
from cerebro_trainer.data.buffers import Dataset, parse_buffer
from cerebro_trainer.data.packing import BufferPacker
from cerebro_trainer.errors import OutOfMemory, RequestError, TrainerError
from cerebro_trainer.wire.fields import integer, number, text
from cerebro_trainer.wire.frames import Bytes, Connection, Frame, Message, Messages, PeerGone
from cerebro_trainer.wire.prefetch import Prefetcher

Handler: TypeAlias = Callable[[Mapping[str, Any], Bytes], Messages]


class Command(NamedTuple):
    """A handler, and whether its request is answered."""

    run: Handler
    replies: bool = True


class Trainer:
    """Serves one connection; without a framework it packs, and keeps data, but trains nothing."""

    def __init__(
        self, connection: Connection, ahead: Prefetcher, workshop: ProgramCache | None
    ) -> None:
        self._connection = connection
        self._ahead = ahead
        self._datasets: dict[str, Dataset] = {}
        self._gpus = workshop.framework.describe_gpus if workshop else gpus.listed
        self._work = Work(workshop, self._datasets, connection.check_peer) if workshop else None
        self._packing = BufferPacker()
        self._deferred: TrainerError | None = None
        self._failed = False
        self._idle: float | None = None
        """How long no request may come, when no call uses the trainer; while one does it may wait
        for hours.
        """
        self._commands = {
            "reset": Command(self._reset, replies=False),
            "open": Command(self._open, replies=False),
            "buffer": Command(self._buffer, replies=False),
            "close": Command(self._close),
            "block": Command(self._block, replies=False),
            "pack": Command(self._pack),
            "suggest": Command(self._suggest),
            "gpus": Command(lambda header, payload: (Message({"ok": {"gpus": self._gpus()}}),)),
        }
        if self._work is not None:
            self._commands |= {
                "state": Command(self._work.state, replies=False),
                "begin": Command(self._work.begin),
                "finish": Command(self._work.finish),
                "state_get": Command(self._work.state_get),
                "results": Command(self._work.results),
                "rows": Command(self._work.rows),
                "outputs": Command(self._work.outputs),
                "features": Command(self._work.features),
                "tell": Command(self._abandoned_soon(self._work.tell)),
                "permute": Command(self._abandoned_soon(self._work.permute)),
                "attribute": Command(self._abandoned_soon(self._work.attribute)),
            }
        ahead.concurrent_handler = self

    def serve(self) -> None:
        """Answer requests until the peer goes: PeerGone, but where another session may have the
        process after this.
        """
        while True:
            try:
                frame = self._ahead.receive(self._idle)
            except OutOfMemory as error:
                self._fail(error)
            except PeerGone as gone:
                if gone.is_idle or not self._reusable:
                    raise
                recipe_values.parse_recipe.cache_clear()
                prediction_columns.texts.cache_clear()
                return
            else:
                self._idle = None
                self._handle(frame)

    def handle_concurrently(self, frame: Frame) -> bool:
        """Send the state that the job being done has replaced, if that is asked for; the answer
        bears the number.
        """
        if (
            self._work is None
            or frame.header.get("do") != "state_get"
            or "aside" not in frame.header
        ):
            return False
        number = {"aside": frame.header["aside"]}
        try:
            for message in self._work.replaced_state(frame.header):
                self._connection.send(Message({**message.header, **number}, *message.payload))
        except TrainerError as error:
            self._connection.send(Message({**error.to_header(), **number}))
        return True

    @property
    def _reusable(self) -> bool:
        """Whether the session did not need it any more when it ended, and whatever it has left can
        be overwritten.
        """
        return (
            self._idle is not None and not self._failed and not (self._work and self._work.private)
        )

    def _handle(self, frame: Frame) -> None:
        command = self._command(str(frame.header.get("do")))
        if self._deferred is None:
            try:
                for message in command.run(frame.header, frame.payload):
                    self._connection.send(message)
            except MemoryError:
                self._fail(OutOfMemory("memory ran out while handling a request"))
            except TrainerError as error:
                self._fail(error)
        if self._deferred is not None and command.replies:
            self._connection.send(Message(self._deferred.to_header()))
            self._deferred = None

    def _command(self, name: str) -> Command:
        def unknown(header: Mapping[str, Any], payload: Bytes) -> Messages:
            known = ", ".join(self._commands)
            raise RequestError(
                f"unknown request {name!r}; this trainer knows {known}",
                sqlstate="0A000",
                hint=None if self._work else "It was started without a framework.",
            )

        return self._commands.get(name, Command(unknown))

    def _fail(self, error: TrainerError) -> None:
        """Keep the error for the next reply. It ends the job that is open, whose state is lost."""
        self._deferred = error
        self._failed = True
        self._packing = BufferPacker()
        if self._work is not None:
            self._work.abandon()

    def _reset(self, header: Mapping[str, Any], payload: Bytes) -> Messages:
        """Forget data and state, for a call is over, or another begins in the same session;
        programs are kept.
        """
        self._idle = _seconds(header)
        self._datasets.clear()
        self._packing = BufferPacker()
        if self._work is not None:
            self._work.reset()
        return ()

    def _abandoned_soon(self, run: Handler) -> Handler:
        """Whoever asks may never come back, for a query can be left in the middle."""

        def handled(header: Mapping[str, Any], payload: Bytes) -> Messages:
            self._idle = _seconds(header)
            return run(header, payload)

        return handled

    def _open(self, header: Mapping[str, Any], payload: Bytes) -> Messages:
        """A dataset may be kept in what the others leave of the trainer's cache."""
        key = text(header, "dataset")
        self._datasets.pop(key, None)
        others = sum(dataset.cached_bytes for dataset in self._datasets.values())
        self._datasets[key] = Dataset(max(0, integer(header, "cache_bytes", minimum=0) - others))
        return ()

    def _buffer(self, header: Mapping[str, Any], payload: Bytes) -> Messages:
        key, buffer = text(header, "dataset"), parse_buffer(header, payload)
        if self._work is None or not self._work.stream(key, buffer, header):
            self._dataset(key).add(buffer)
        return ()

    def _close(self, header: Mapping[str, Any], payload: Bytes) -> Messages:
        dataset = self._dataset(text(header, "dataset"))
        dataset.is_closed = True
        return (Message({"ok": dataset.summarize()}),)

    def _block(self, header: Mapping[str, Any], payload: Bytes) -> Messages:
        self._packing.add(header, payload)
        return ()

    def _pack(self, header: Mapping[str, Any], payload: Bytes) -> Messages:
        """What came since the last one; then another buffer begins."""
        packing, self._packing = self._packing, BufferPacker()
        shapes = packing.get_shapes()
        told = [] if header.get("shapes_only") is True else list(packing.take_columns(header))
        reply = {"shapes": shapes, "lengths": [column.nbytes for column in told]}
        return (Message({"ok": reply}, *(column.data for column in told)),)

    def _suggest(self, header: Mapping[str, Any], payload: Bytes) -> Messages:
        # Loaded here, because Optuna need not be installed.
        suggestions = importlib.import_module("cerebro_trainer.commands.suggestions")
        return (Message({"ok": {"points": suggestions.suggest(header)}}),)

    def _dataset(self, key: str) -> Dataset:
        if key not in self._datasets:
            raise RequestError(f"dataset {key!r} was not opened", sqlstate="55000")
        return self._datasets[key]


def _seconds(header: Mapping[str, Any]) -> float | None:
    """How long the next request may take to come; None for any time."""
    return None if header.get("idle_seconds") is None else number(header, "idle_seconds")
