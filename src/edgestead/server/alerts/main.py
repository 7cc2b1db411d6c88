"""The process that sends alerts.

Owns  asking control for rows, handing messages to receivers, trying again, storing what was sent.
Not   when an alert fires or ends (`health.alerting`).

A process of its own: a mail server that hangs holds up no request, and a control that does not answer is
itself an alert. Each receiver has a thread and at most one message under way; looks go on meanwhile.
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from edgestead.config_alerts import Receiver
from edgestead.health import messages
from edgestead.health.alerting import Alerting, Item, Terms
from edgestead.health.rows import Row
from edgestead.model.counters import slot
from edgestead.server import process
from edgestead.server.alerts import state_file
from edgestead.server.alerts.delivery import NotDelivered, deliver
from edgestead.server.alerts.state_file import ReceiverState, Sent
from edgestead.server.errors import StartError
from edgestead.server.health.asking import rows_of_control, rows_without_control
from edgestead.server.messages import AlertsStart
from edgestead.server.supervisor.admin import serve_admin
from edgestead.server.supervisor.last_words import LastWords

LOOK_SECONDS: Final = 1.0
CONTROL_SECONDS: Final = 1.0  # for one answer of control
AWAY_LOOKS: Final = 5  # without an answer, 10 s; a restart of control takes one or two
STORE_SECONDS: Final = 60.0  # between two writes of how long alerts have waited
RETRY_FIRST_SECONDS: Final = 5.0
RETRY_SECONDS_MAX: Final = 300.0  # between two tries of a delivery

_FAILING = slot("edge_alerts_receivers_failing")
_DELIVERED = slot("edge_alerts_messages_total", "delivered")
_FAILED = slot("edge_alerts_messages_total", "failed")

_log = logging.getLogger("edgestead.server")


class Courier:
    """One receiver: its alerts, its thread, when it is tried again."""

    def __init__(self, receiver: Receiver, stored: ReceiverState) -> None:
        self.receiver = receiver
        self.stored = stored
        terms = Terms(
            frozenset(receiver.checks),
            "fail" if receiver.level == "fail" else "warn",
            receiver.hold_seconds,
            receiver.repeat_hours * 3_600,
        )
        self.alerting = Alerting(terms, partial(secrets.token_hex, 8), stored.alerts)
        self.thread = ThreadPoolExecutor(1, f"alerts-{receiver.name}")
        self.is_busy = False
        self.backoff_seconds = RETRY_FIRST_SECONDS
        self.wait_seconds = 0.0  # until it is tried again


class Alerts:
    """Make and run it on a loop."""

    def __init__(self, start: AlertsStart, status: process.Status) -> None:
        self._start = start
        self._status = status
        self._folder = Path(start.data_dir)
        self._page = process.page(start.counters_fd)
        self._words = LastWords(start.last_words_fd)
        self._state = state_file.read(self._folder)
        known = self._state.receivers
        self._couriers = [Courier(one, known.get(one.name, ReceiverState())) for one in start.receivers]
        self._state.receivers = {one.receiver.name: one.stored for one in self._couriers}
        self._tasks: set[asyncio.Task[None]] = set()
        self._storing = asyncio.Lock()
        self._unanswered = 0
        self._unstored_seconds = 0.0
        self._is_stored = True

    async def run(self) -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        handlers = {f"test {one.receiver.name}": partial(self._test, one) for one in self._couriers}
        admin = await serve_admin(socket.socket(fileno=self._start.socket_fd), handlers)
        looking = asyncio.create_task(self._look_for_ever())
        self._show()
        await self._store()
        self._status.ready()
        while not stopped.is_set():
            self._status.beat()
            try:
                await asyncio.wait_for(stopped.wait(), process.BEAT_SECONDS)
            except TimeoutError:
                continue
        looking.cancel()
        admin.close()
        await self._store()

    async def _look_for_ever(self) -> None:
        while True:
            try:
                await self._look()
            except Exception:
                _log.exception("a look at what is to be sent failed")  # the next one may not
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        """Each look counts as the usual time between two: nothing is held down or repeated by a pause."""
        rows = await self._rows()
        changed = [courier.alerting.look(rows, LOOK_SECONDS) for courier in self._couriers]
        self._unstored_seconds += LOOK_SECONDS
        if any(changed) or (self._unstored_seconds >= STORE_SECONDS and self._has_alerts):
            await self._store()
        for courier in self._couriers:
            courier.wait_seconds -= LOOK_SECONDS
            if not courier.is_busy and courier.wait_seconds <= 0 and (items := courier.alerting.due()):
                courier.is_busy = True
                task = asyncio.create_task(self._send(courier, items))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    @property
    def _has_alerts(self) -> bool:
        return any(courier.alerting.alerts for courier in self._couriers)

    async def _rows(self) -> tuple[Row, ...] | None:
        """None while nothing is known: control may be between two of its lives."""
        rows = await asyncio.to_thread(rows_of_control, Path(self._start.control_path), CONTROL_SECONDS)
        self._unanswered = 0 if rows is not None else self._unanswered + 1
        if self._unanswered < AWAY_LOOKS:
            return rows
        found = await asyncio.to_thread(rows_without_control, self._folder, self._words.read())
        before = {key: alert.row for one in self._couriers for key, alert in one.alerting.alerts.items()}
        # Of other rows nothing is known: what was not well stays so.
        return tuple((before | {row.key: row for row in found}).values())

    async def _send(self, courier: Courier, items: list[Item]) -> None:
        """One attempt. It is stored before and after, so that a crash repeats at most this one."""
        try:
            courier.alerting.trying(items)
            await self._store()
            content = messages.payload(self._start.server, items, _now_us())
            if await self._deliver(courier, content):
                courier.alerting.delivered(items)
                courier.backoff_seconds = RETRY_FIRST_SECONDS
            else:
                courier.wait_seconds = courier.backoff_seconds
                courier.backoff_seconds = min(2 * courier.backoff_seconds, RETRY_SECONDS_MAX)
            await self._store()
        finally:
            courier.is_busy = False

    async def _deliver(self, courier: Courier, content: messages.Payload) -> bool:
        """Send a message, and note what became of it."""
        name, stored, error = courier.receiver.name, courier.stored, ""
        work = partial(deliver, courier.receiver, content, _now_us())
        try:
            await asyncio.get_running_loop().run_in_executor(courier.thread, work)
        except NotDelivered as failure:
            error = str(failure)
        except Exception as failure:
            _log.exception("an alert could not be sent to %s", name)
            error = type(failure).__name__
        words = messages.headline(content)
        if error:
            self._page.add(_FAILED)
            _log.warning("alert not taken by %s: %s: %s", name, words, error)
            if not stored.error:
                stored.failing_since_us = _now_us()
                self._state.note(Sent(_now_us(), name, "failed", words, error))
        else:
            self._page.add(_DELIVERED)
            _log.info("alert sent to %s: %s", name, words)
            stored.failing_since_us = 0
            self._state.note(Sent(_now_us(), name, "delivered", words))
        stored.error = error
        self._show()
        return not error

    async def _test(self, courier: Courier) -> None:
        """Somebody asked for a message now."""
        content = messages.payload(self._start.server, (), _now_us())
        taken = await self._deliver(courier, content)
        await self._store()
        if not taken:
            raise StartError(f"{courier.receiver.name} did not take it: {courier.stored.error}")
        courier.wait_seconds = 0.0

    def _show(self) -> None:
        self._page.set(_FAILING, len(self._state.failing))

    async def _store(self) -> None:
        """A full disk must not keep alerts in: then a restart may send some again."""
        async with self._storing:  # what is newer is written later
            self._unstored_seconds = 0.0
            for courier in self._couriers:
                courier.stored.alerts = list(courier.alerting.alerts.values())
            await asyncio.to_thread(self._write, state_file.encode(self._state))

    def _write(self, content: bytes) -> None:
        try:
            state_file.write(self._folder, content)
        except OSError as error:
            if self._is_stored:
                _log.warning("what was sent cannot be stored, so a restart may send it again: %s", error)
            self._is_stored = False
        else:
            self._is_stored = True


def _now_us() -> int:
    return time.time_ns() // 1_000


def main() -> None:
    start = process.begin(AlertsStart)
    asyncio.run(_run(start))


async def _run(start: AlertsStart) -> None:
    await Alerts(start, process.Status(start.status_fd)).run()
    logging.shutdown()
    # Threads may wait for a receiver; everything is stored, and what is under way is sent again.
    os._exit(0)
