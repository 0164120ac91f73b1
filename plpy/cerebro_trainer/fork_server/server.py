"""Imports a framework, and forks a trainer for each backend that asks, or gives it one that another
has left.

A backend's connection lives as long as its trainer: it passes descriptors, is told the process id
and at last the exit status, and its end, whatever ended the backend, ends the trainer. But where
the backend has said before that no call uses it, the trainer is kept for the next one that asks by
the same key. This process never sees a row, a state or a statement, and holds no descriptor of a
trainer but while it waits for one that is kept to take them.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass

from setproctitle import setproctitle

from cerebro_trainer import frameworks, process_isolation, service
from cerebro_trainer.fork_server import lease, memory, messages
from cerebro_trainer.fork_server.idle_pool import Shelf, Trainer
from cerebro_trainer.fork_server.lease import DESCRIPTORS, Tenant

CREDENTIALS = struct.Struct("3i")
"""Process id, user and group of a peer."""
BUSY = select.POLLIN | select.POLLRDHUP
LOOK_SECONDS = 1.0
"""Between two looks at the memory, while trainers are kept."""
TAKE_SECONDS = 5.0
"""How long a trainer that is kept may take to overwrite what it has left, and to take another
backend's descriptors.
"""


@dataclass(eq=False)
class Post:
    """A backend's connection, and its trainer as soon as there is one."""

    connection: socket.socket
    trainer: Trainer | None = None
    rests: float | None = None
    """For how many seconds its trainer may be kept if the backend goes now; None while a call uses
    it.
    """
    offer: Tenant | None = None
    """What a trainer that was kept has not taken yet."""
    until: float = 0.0
    """When it has to have taken that."""


def serve(listener: socket.socket, framework: str, seconds: float) -> None:
    """Fork trainers until none is wanted for so many seconds."""
    setproctitle(f"cerebro_nursery: {framework}")
    process_isolation.prefer_for_memory_killer()
    process_isolation.lower_cpu_priority(use_thread=False)
    _imported(framework)
    gc.collect()
    gc.freeze()
    Nursery(listener, framework).serve(seconds)


def _imported(framework: str) -> None:
    """What is imported looks for settings in its home: a folder with nothing in it, as for each
    trainer.
    """
    with tempfile.TemporaryDirectory(prefix=f"cerebro_trainer-{os.getpid()}-") as home:
        lock = os.open(home, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)  # others sweep folders that nobody holds
        lease.move_to(home)
        frameworks.load(framework)
        os.chdir("/")
        os.close(lock)


class Nursery:
    """Serves an address. All is done by the main thread: a trainer ends with the thread that forked
    it.
    """

    def __init__(self, listener: socket.socket, framework: str) -> None:
        self._listener = listener
        self._framework = framework
        self._posts: dict[int, Post] = {}
        """By their connections' descriptors."""
        self._trainers: dict[int, Trainer] = {}
        """By each of their descriptors."""
        self._served: dict[Trainer, Post] = {}
        self._shelf = Shelf(len(os.sched_getaffinity(0)) + 1)
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._looked = 0.0

    def serve(self, seconds: float) -> None:
        """Until nobody has come for so many seconds, and no trainer is left."""
        while True:
            ready = dict(self._poll.poll(self._patience(seconds)))
            if not (ready or self._posts or self._trainers):
                return
            # Whose they were when this was said: a number may be another's by the time it is that
            # one's turn.
            trainers = {each: self._trainers[each] for each in ready if each in self._trainers}
            posts = {each: self._posts[each] for each in ready if each in self._posts}
            for descriptor, trainer in trainers.items():
                if self._trainers.get(descriptor) is trainer:
                    self._heed(trainer, descriptor)
            for descriptor, post in posts.items():
                if self._posts.get(descriptor) is post:
                    self._attend(post)
            if self._listener.fileno() in ready:
                self._admit()
            self._tidy()

    def _patience(self, seconds: float) -> float | None:
        """How many milliseconds it may wait for something to do; None for any time."""
        if not (self._posts or self._trainers):
            return seconds * 1000
        ends = [post.until for post in self._posts.values() if post.offer]
        if self._shelf.trainers():
            ends += [self._shelf.until() or 0.0, self._looked + LOOK_SECONDS]
        return max(0.0, min(ends) - time.monotonic()) * 1000 + 1 if ends else None

    def _tidy(self) -> None:
        """End trainers that were kept for long enough, or have no room, or do not take what they
        should.
        """
        now = time.monotonic()
        for trainer in self._shelf.overdue(now):
            _kill(trainer)
        for trainer, post in self._served.items():
            if post.offer and now >= post.until:
                _kill(trainer)
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            kept = self._shelf.trainers()
            if kept and memory.short(each.pid for each in kept):
                self._shelf.remove(kept[0])
                _kill(kept[0])
                self._looked = 0.0  # whether that was enough

    def _admit(self) -> None:
        connection, _ = self._listener.accept()
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        if CREDENTIALS.unpack(peer)[1] != os.getuid():
            connection.close()
            return
        connection.setblocking(False)
        self._posts[connection.fileno()] = Post(connection)
        self._poll.register(connection, BUSY)
        messages.send(connection, {"nursery": os.getpid()})

    def _attend(self, post: Post) -> None:
        if post.trainer is None:
            self._begin(post)
            return
        words = messages.receive(post.connection)
        if words is None:
            self._part(post, post.trainer)
        else:
            rests = words.get("rests")
            post.rests = float(rests) if isinstance(rests, (int, float)) else None

    def _part(self, post: Post, trainer: Trainer) -> None:
        """The backend has gone, or wants no trainer any more."""
        self._forget(post)
        _close(post.offer)
        if post.rests is None or post.offer or trainer.key is None:
            post.offer = None
            _kill(trainer)  # its end is told to a backend that waits for it
            return
        del self._served[trainer]
        post.connection.close()
        self._shelf.put(trainer, time.monotonic() + post.rests)

    def _begin(self, post: Post) -> None:
        """Give the trainer that is asked for. Who cannot have one is told so by the end of the
        connection.
        """
        text, received = b"", list[int]()
        with suppress(OSError):
            text, received, _, _ = socket.recv_fds(
                post.connection, messages.MOST_BYTES, DESCRIPTORS
            )
        request = lease.request(text)
        tenant = Tenant(request or {}, received)
        if request is None or len(received) != DESCRIPTORS:
            _close(tenant)
            self._dismiss(post)
        elif not self._offered(post, tenant):
            self._fork(post, tenant)

    def _offered(self, post: Post, tenant: Tenant) -> bool:
        """Offer a trainer that is kept to a backend of its key; False where there is none."""
        key = tenant.request["key"]
        while key is not None and (trainer := self._shelf.take(key)):
            if not memory.roomy(trainer.pid, tenant.request["memory"]):
                _kill(trainer)
                continue
            self._served[trainer] = post
            try:
                socket.send_fds(
                    trainer.mail, [json.dumps(tenant.request).encode()], tenant.descriptors
                )
            except OSError:
                del self._served[trainer]
                _kill(trainer)
                continue
            post.trainer, post.offer, post.until = trainer, tenant, time.monotonic() + TAKE_SECONDS
            return True
        return False

    def _fork(self, post: Post, tenant: Tenant) -> None:
        try:
            if len(os.listdir("/proc/self/task")) > 1:
                raise BlockingIOError("a process with threads is not forked")
            trainer = self._forked(tenant)
        except OSError:  # there is no room for another process
            self._dismiss(post)
            return
        finally:
            _close(tenant)
        self._serve(post, trainer)

    def _serve(self, post: Post, trainer: Trainer) -> None:
        post.trainer = trainer
        self._served[trainer] = post
        messages.send(post.connection, {"pid": trainer.pid})

    def _heed(self, trainer: Trainer, descriptor: int) -> None:
        if descriptor == trainer.exited:
            self._bury(trainer)
            return
        post = self._served.get(trainer)
        if messages.received(trainer.mail) != lease.TAKEN:  # it has ended, which is seen next
            self._unwatch(trainer.mail.fileno())
        elif post and post.offer:
            _close(post.offer)
            post.offer = None
            messages.send(post.connection, {"pid": trainer.pid})

    def _bury(self, trainer: Trainer) -> None:
        _, status = os.waitpid(trainer.pid, 0)
        self._shelf.remove(trainer)
        for descriptor in (trainer.exited, trainer.mail.fileno()):
            if descriptor in self._trainers:
                self._unwatch(descriptor)
        os.close(trainer.exited)
        trainer.mail.close()
        post = self._served.pop(trainer, None)
        if post is None:
            return
        post.trainer = None
        if post.offer:  # it was not to be kept after all
            offer, post.offer = post.offer, None
            self._fork(post, offer)
            return
        messages.send(post.connection, {"status": os.waitstatus_to_exitcode(status)})
        self._dismiss(post)

    def _dismiss(self, post: Post) -> None:
        if post.connection.fileno() in self._posts:
            self._forget(post)
        post.connection.close()

    def _forget(self, post: Post) -> None:
        del self._posts[post.connection.fileno()]
        self._poll.unregister(post.connection)

    def _watch(self, descriptor: int, trainer: Trainer) -> None:
        self._trainers[descriptor] = trainer
        self._poll.register(descriptor, select.POLLIN)

    def _unwatch(self, descriptor: int) -> None:
        del self._trainers[descriptor]
        self._poll.unregister(descriptor)

    def _forked(self, tenant: Tenant) -> Trainer:
        """A new process for a backend; an OSError where there can be none."""
        nursery = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            pid = os.fork()
            if not pid:
                self._become_trainer(tenant, theirs, nursery)
            exited = _watchable(pid)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        trainer = Trainer(pid, exited, ours, tenant.request["key"])
        self._watch(exited, trainer)
        self._watch(ours.fileno(), trainer)
        return trainer

    def _become_trainer(self, tenant: Tenant, mail: socket.socket, nursery: int) -> None:
        """Be a trainer to the end."""
        try:
            lease.stand_alone(tenant, mail, nursery)
            first, later = (
                lease.move_in(tenant, self._framework),
                lease.later(tenant, self._framework, mail),
            )
            service.serve(first, later)
        except SystemExit as error:
            print(error, file=sys.stderr, flush=True)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)


def _watchable(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _kill(trainer: Trainer) -> None:
    """A trainer, with what it started."""
    with suppress(ProcessLookupError):
        os.kill(trainer.pid, signal.SIGKILL)
        os.killpg(trainer.pid, signal.SIGKILL)


def _close(tenant: Tenant | None) -> None:
    for each in tenant.descriptors if tenant else ():
        os.close(each)
