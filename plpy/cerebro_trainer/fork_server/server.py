"""The fork server: imports a framework, and forks or reuses a trainer for each backend.

A backend's connection exists as long as its trainer. The backend sends descriptors through it, and
receives the process id and finally the exit status. The end of the connection, whatever ended the
backend, ends the trainer. If the backend has announced before that no call uses the trainer, the
trainer becomes idle instead, and the next backend with the same key may reuse it.

This process never sees a row, a state or a statement. It has descriptors of a trainer only while an
idle trainer has not accepted them yet.
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
from cerebro_trainer.fork_server.idle_pool import ForkedTrainer, IdlePool
from cerebro_trainer.fork_server.lease import DESCRIPTORS, Lease

CREDENTIALS = struct.Struct("3i")
"""Process id, user and group of a peer."""
CLIENT_EVENTS = select.POLLIN | select.POLLRDHUP
MEMORY_CHECK_SECONDS = 1.0
"""Interval between memory checks while there are idle trainers."""
ACCEPT_SECONDS = 5.0
"""Time for an idle trainer to clear its previous session and to accept a lease."""


@dataclass(eq=False)
class Client:
    """A backend that is connected."""

    connection: socket.socket
    trainer: ForkedTrainer | None = None
    # Time for which the trainer may stay idle if the backend goes now; None during a call
    idle_seconds: float | None = None
    # A lease that an idle trainer has not accepted yet
    offered_lease: Lease | None = None
    offer_deadline: float = 0.0


def serve(listener: socket.socket, framework: str, seconds: float) -> None:
    """Fork trainers until none has been requested for `seconds`."""
    setproctitle(f"cerebro_nursery: {framework}")
    process_isolation.prefer_for_memory_killer()
    process_isolation.lower_cpu_priority(use_thread=False)
    _import_framework(framework)
    gc.collect()
    gc.freeze()
    ForkServer(listener, framework).serve(seconds)


def _import_framework(framework: str) -> None:
    """Import a framework with an empty home directory, where it looks for settings."""
    with tempfile.TemporaryDirectory(prefix=f"cerebro_trainer-{os.getpid()}-") as home:
        lock = os.open(home, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)  # other processes remove folders without a lock
        lease.change_home(home)
        if frameworks.load(framework) is not None:
            frameworks.load_boosting()
        os.chdir("/")
        os.close(lock)


class ForkServer:
    """Serves an address.

    Everything happens in the main thread, because a trainer ends with the thread that forked it.
    """

    def __init__(self, listener: socket.socket, framework: str) -> None:
        self._listener = listener
        self._framework = framework
        # By the descriptors of their connections
        self._clients: dict[int, Client] = {}
        # By each of their descriptors
        self._trainers: dict[int, ForkedTrainer] = {}
        self._clients_by_trainer: dict[ForkedTrainer, Client] = {}
        self._idle_pool = IdlePool(len(os.sched_getaffinity(0)) + 1)
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._last_memory_check = 0.0

    def serve(self, seconds: float) -> None:
        """Serve until no client has come for `seconds` and no trainer is left."""
        while True:
            ready = dict(self._poll.poll(self._poll_timeout(seconds)))
            if not (ready or self._clients or self._trainers):
                return
            # Look all of them up first: handling one event may close the descriptor of another,
            # and its number may be reused.
            trainers = {fd: self._trainers[fd] for fd in ready if fd in self._trainers}
            clients = {fd: self._clients[fd] for fd in ready if fd in self._clients}
            for descriptor, trainer in trainers.items():
                if self._trainers.get(descriptor) is trainer:
                    self._handle_trainer(trainer, descriptor)
            for descriptor, client in clients.items():
                if self._clients.get(descriptor) is client:
                    self._handle_client(client)
            if self._listener.fileno() in ready:
                self._accept_client()
            self._end_trainers()

    def _poll_timeout(self, seconds: float) -> float | None:
        """Return the milliseconds until there is something to do; None for no limit."""
        if not (self._clients or self._trainers):
            return seconds * 1000
        deadlines = [
            client.offer_deadline for client in self._clients.values() if client.offered_lease
        ]
        if self._idle_pool.trainers():
            deadlines.append(self._idle_pool.next_expiry() or 0.0)
            deadlines.append(self._last_memory_check + MEMORY_CHECK_SECONDS)
        if not deadlines:
            return None
        return max(0.0, min(deadlines) - time.monotonic()) * 1000 + 1

    def _end_trainers(self) -> None:
        """End trainers that were idle for too long, lack memory, or do not accept a lease."""
        now = time.monotonic()
        for trainer in self._idle_pool.take_expired(now):
            _kill(trainer)
        for trainer, client in self._clients_by_trainer.items():
            if client.offered_lease and now >= client.offer_deadline:
                _kill(trainer)
        if now - self._last_memory_check >= MEMORY_CHECK_SECONDS:
            self._last_memory_check = now
            idle = self._idle_pool.trainers()
            if idle and memory.exceed_share(trainer.pid for trainer in idle):
                self._idle_pool.remove(idle[0])
                _kill(idle[0])
                self._last_memory_check = 0.0  # check again at once

    def _accept_client(self) -> None:
        connection, _ = self._listener.accept()
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        _, user, _ = CREDENTIALS.unpack(peer)
        if user != os.getuid():
            connection.close()
            return
        connection.setblocking(False)
        self._clients[connection.fileno()] = Client(connection)
        self._poll.register(connection, CLIENT_EVENTS)
        messages.send(connection, {"nursery": os.getpid()})

    def _handle_client(self, client: Client) -> None:
        if client.trainer is None:
            self._handle_request(client)
            return
        message = messages.receive(client.connection)
        if message is None:
            self._end_client(client, client.trainer)
            return
        idle_seconds = message.get("rests")
        if isinstance(idle_seconds, (int, float)):
            client.idle_seconds = float(idle_seconds)
        else:
            client.idle_seconds = None

    def _end_client(self, client: Client, trainer: ForkedTrainer) -> None:
        """End the trainer of a backend that has gone or no longer wants it, or make it idle."""
        self._unregister_client(client)
        _close(client.offered_lease)
        if client.idle_seconds is None or client.offered_lease or trainer.key is None:
            client.offered_lease = None
            _kill(trainer)  # a backend that waits receives its exit status later
            return
        del self._clients_by_trainer[trainer]
        client.connection.close()
        self._idle_pool.add(trainer, time.monotonic() + client.idle_seconds)

    def _handle_request(self, client: Client) -> None:
        """Provide the requested trainer; close the connection if that is not possible."""
        packet = b""
        descriptors: list[int] = []
        with suppress(OSError):
            packet, descriptors, _, _ = socket.recv_fds(
                client.connection, messages.MAX_BYTES, DESCRIPTORS
            )
        request = lease.parse_request(packet)
        new_lease = Lease(request or {}, descriptors)
        if request is None or len(descriptors) != DESCRIPTORS:
            _close(new_lease)
            self._dismiss(client)
        elif not self._offer_idle_trainer(client, new_lease):
            self._fork(client, new_lease)

    def _offer_idle_trainer(self, client: Client, new_lease: Lease) -> bool:
        """Offer a lease to an idle trainer with the same key; return False if there is none."""
        key = new_lease.request["key"]
        while key is not None and (trainer := self._idle_pool.take(key)):
            if not memory.has_headroom(trainer.pid, new_lease.request["memory"]):
                _kill(trainer)
                continue
            self._clients_by_trainer[trainer] = client
            packet = json.dumps(new_lease.request).encode()
            try:
                socket.send_fds(trainer.mailbox, [packet], new_lease.descriptors)
            except OSError:
                del self._clients_by_trainer[trainer]
                _kill(trainer)
                continue
            client.trainer = trainer
            client.offered_lease = new_lease
            client.offer_deadline = time.monotonic() + ACCEPT_SECONDS
            return True
        return False

    def _fork(self, client: Client, new_lease: Lease) -> None:
        try:
            if len(os.listdir("/proc/self/task")) > 1:
                raise BlockingIOError("a process with threads is not forked")
            trainer = self._fork_trainer(new_lease)
        except OSError:  # also if the system cannot create another process
            self._dismiss(client)
            return
        finally:
            _close(new_lease)
        client.trainer = trainer
        self._clients_by_trainer[trainer] = client
        messages.send(client.connection, {"pid": trainer.pid})

    def _handle_trainer(self, trainer: ForkedTrainer, descriptor: int) -> None:
        if descriptor == trainer.pidfd:
            self._reap(trainer)
            return
        client = self._clients_by_trainer.get(trainer)
        if messages.receive_packet(trainer.mailbox) != lease.ACCEPTED:
            self._unwatch(trainer.mailbox.fileno())  # it has ended; its pidfd becomes readable
        elif client and client.offered_lease:
            _close(client.offered_lease)
            client.offered_lease = None
            messages.send(client.connection, {"pid": trainer.pid})

    def _reap(self, trainer: ForkedTrainer) -> None:
        _, status = os.waitpid(trainer.pid, 0)
        self._idle_pool.remove(trainer)
        for descriptor in (trainer.pidfd, trainer.mailbox.fileno()):
            if descriptor in self._trainers:
                self._unwatch(descriptor)
        os.close(trainer.pidfd)
        trainer.mailbox.close()
        client = self._clients_by_trainer.pop(trainer, None)
        if client is None:
            return
        client.trainer = None
        rejected_lease = client.offered_lease
        if rejected_lease:
            client.offered_lease = None
            self._fork(client, rejected_lease)
            return
        messages.send(client.connection, {"status": os.waitstatus_to_exitcode(status)})
        self._dismiss(client)

    def _dismiss(self, client: Client) -> None:
        if client.connection.fileno() in self._clients:
            self._unregister_client(client)
        client.connection.close()

    def _unregister_client(self, client: Client) -> None:
        del self._clients[client.connection.fileno()]
        self._poll.unregister(client.connection)

    def _watch(self, descriptor: int, trainer: ForkedTrainer) -> None:
        self._trainers[descriptor] = trainer
        self._poll.register(descriptor, select.POLLIN)

    def _unwatch(self, descriptor: int) -> None:
        del self._trainers[descriptor]
        self._poll.unregister(descriptor)

    def _fork_trainer(self, new_lease: Lease) -> ForkedTrainer:
        """Fork a trainer; raise OSError if that is not possible."""
        fork_server = os.getpid()
        mailbox, trainer_mailbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            pid = os.fork()
            if not pid:
                self._run_trainer(new_lease, trainer_mailbox, fork_server)
            pidfd = _open_pidfd(pid)
        except OSError:
            mailbox.close()
            raise
        finally:
            trainer_mailbox.close()
        mailbox.setblocking(False)
        trainer = ForkedTrainer(pid, pidfd, mailbox, new_lease.request["key"])
        self._watch(pidfd, trainer)
        self._watch(mailbox.fileno(), trainer)
        return trainer

    def _run_trainer(self, new_lease: Lease, mailbox: socket.socket, fork_server: int) -> None:
        """Be a trainer until the process ends."""
        try:
            lease.isolate_process(new_lease, mailbox, fork_server)
            assignment = lease.begin_lease(new_lease, self._framework)
            later_assignments = lease.receive_leases(new_lease, self._framework, mailbox)
            service.serve(assignment, later_assignments)
        except SystemExit as error:
            print(error, file=sys.stderr, flush=True)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)


def _open_pidfd(pid: int) -> int:
    """Return a pidfd; kill the process if the kernel cannot open one."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _kill(trainer: ForkedTrainer) -> None:
    """Kill a trainer with the processes that it has started."""
    with suppress(ProcessLookupError):
        os.kill(trainer.pid, signal.SIGKILL)
        os.killpg(trainer.pid, signal.SIGKILL)


def _close(unused_lease: Lease | None) -> None:
    for descriptor in unused_lease.descriptors if unused_lease else ():
        os.close(descriptor)
