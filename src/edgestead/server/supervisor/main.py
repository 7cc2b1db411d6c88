"""`edgecli serve`: starts the children, keeps them alive, ends them in order.

Owns  the start, restart and end of every child, and when the server counts as ready.
Not   a byte of any request; no user code. What it holds (lock, sockets, counters) outlives each child.
"""

import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from edgestead.config import Config
from edgestead.health.checks import withheld
from edgestead.health.facts import Facts
from edgestead.server import log, process
from edgestead.server.errors import StartError
from edgestead.server.supervisor.child import Child
from edgestead.server.supervisor.estate import Estate
from edgestead.server.supervisor.loop import Loop
from edgestead.server.supervisor.node_estate import NodeEstate
from edgestead.server.supervisor.notify import Notify
from edgestead.server.supervisor.ready import Ready

SLOW_SECONDS = 5  # of one life without being ready, until the operator hears what it does
START_SECONDS_MAX = 120
"""Of one life, until it is ready or says that it does something else: a large database is migrated in it."""
KEYS_AGAIN_SECONDS = 60  # after a look for keys that failed as nobody foresaw
START_LIVES_MAX = 5  # of one child, each ended by others, until a server that is not up gives up

BURY_SECONDS = 0.02  # between two looks at a process that a debugger still holds after its end
SAY_SECONDS, SAY_LOOKS = 0.05, 10
"""For one that stood still and is ended, to say where (`faulthandler`): it takes some ms of a turn on a
processor, and who still has not run at the next look never will."""
LOOKS = 4  # for silence, in the shortest time that anybody may be silent
LOOKS_STILL = 3  # for stillness, in the shortest time that anybody may stand still

_END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_log = logging.getLogger("edgestead.server")


def supervise(config: Config, announce: Callable[[Ready], None]) -> int:
    """Run the server until it is told to end; returns the exit status.

    `announce` is called once, when everything answers. Raises StartError when it could not start.
    """
    if config.log_form is None:
        config = replace(config, log_form=log.form_of(sys.stderr, config.log_file))
    log.configure("supervisor", config.log_level, config.log_form or "json")
    _raise_descriptor_limit()
    estate, notify = estate_of(config), Notify(os.environ)
    supervisor = Supervisor(
        estate,
        drain_seconds=config.drain_seconds,
        announce=announce,
        notify=notify,
    )
    with estate:
        return supervisor.run()


def estate_of(config: Config) -> Estate:
    """Of a node that has no control: the cluster's database is for those that do."""
    if config.cluster is not None and config.cluster_database is None:
        return NodeEstate(config)
    return Estate(config)


class Supervisor:
    """The children of one estate, from first start to last end. From its making on signals wait for `run`."""

    def __init__(
        self,
        estate: Estate,
        *,
        drain_seconds: float,
        announce: Callable[[Ready], None],
        notify: Notify,
    ) -> None:
        self._estate = estate
        self._drain_seconds = drain_seconds
        self._announce = announce
        self._notify = notify
        self._loop = Loop(time.monotonic)
        self._looked_at: float | None = None  # for silence
        self._key_look = 0  # which look for keys that are due is the next
        self._stages_left: list[list[Child]] = []
        self._waiting: set[str] = set()  # children between two lives
        self._addresses = ""
        self._is_up = False
        self._is_ending = False
        self._is_forced = False
        self._failure = ""
        self._loop.on_signals(_END_SIGNALS, self._end_asked)
        self._loop.on_signals((signal.SIGCHLD,), self._continue_stopped)

    def run(self) -> int:
        for child in self._estate.children:
            self._start(child)
        self._renew_keys()
        self._look_for_silence()
        self._say_alive()
        self._loop.run()
        if self._failure:
            raise StartError(self._failure)
        return 1 if self._is_forced else 0

    def _start(self, child: Child) -> None:
        self._waiting.discard(child.name)
        if self._is_ending or child.is_alive:
            return
        if lost := self._estate.lost:
            self._lose(lost)
            return
        if (spare := child.spare) is not None:
            self._forget(spare)  # its process becomes this child's
        try:
            child.start()
        except (OSError, StartError) as error:  # no room for a process; credentials.json damaged meanwhile
            if self._is_up:
                _log.error("%s was not started: %s", child.name, error)
            self._has_failed(child, str(error), may_start_again=self._is_up)
            return
        self._loop.watch(child.pidfd, partial(self._ended, child))
        self._loop.watch(child.status_fd, partial(self._spoke, child))
        self._loop.after(SLOW_SECONDS, partial(self._say_unless_ready, child, child.lives))
        self._give_time_to_start(child, child.lives)

    def _start_spares(self) -> None:
        """Those that are not there: at the end of the start, and when one that was taken answers."""
        for spare in self._estate.spares:
            if not spare.is_alive and (spare.lives or not spare.first_life_after_seconds):
                self._start(spare)

    def _start_first_spares(self) -> None:
        for spare in self._estate.spares:
            self._loop.after(spare.first_life_after_seconds, partial(self._start, spare))

    def _start_apart(self) -> None:
        """A class went apart: its process runs from now on."""
        child = self._estate.apart
        if child is not None and not self._estate.needs_apart:
            self._estate.needs_apart = True
            self._start(child)

    def _forget(self, child: Child) -> None:
        self._loop.forget(child.pidfd)
        if not child.is_hung_up:
            self._loop.forget(child.status_fd)

    def _renew_keys(self, look: int = 0) -> None:
        if look == self._key_look:
            seconds: float = KEYS_AGAIN_SECONDS
            try:
                seconds = self._estate.renew_keys()
            finally:
                self._look_for_keys(seconds)

    def _look_for_keys(self, seconds: float) -> None:
        """After so long, and no more at the time that was planned before."""
        self._key_look += 1
        self._loop.after(seconds, partial(self._renew_keys, self._key_look))

    def _look_for_silence(self) -> None:
        """Each look counts as the usual time between two at most: nobody is blamed while this process stood
        still.
        """
        seconds = min(process.CONTROL_BEAT_SECONDS, *map(_look_seconds, self._estate.children))
        self._loop.after(seconds, self._look_for_silence)
        now = time.monotonic()
        elapsed, self._looked_at = now - (self._looked_at or now - seconds), now
        if self._is_ending:
            return
        for child in self._stuck():
            self._has_failed(child, "nobody has started it again", may_start_again=self._is_up)
        for child in self._estate.children:
            if child.is_alive and (words := child.end_if_silent(seconds, elapsed)):
                _log.error("%s (pid %d) %s: killed", child.name, child.pid, words)
                if child.stood_still:
                    self._loop.after(SAY_SECONDS, partial(self._kill_still, child, child.lives))

    def _kill_still(self, child: Child, life: int, looks: int = 1) -> None:
        if child.lives != life or not child.is_alive:
            return
        if looks < SAY_LOOKS and not child.goes_on_standing(SAY_SECONDS):
            self._loop.after(SAY_SECONDS, partial(self._kill_still, child, life, looks + 1))
        else:
            child.send(signal.SIGKILL)

    def _continue_stopped(self) -> None:
        """A parent hears at once of a child that was stopped: nothing of ours stops one, so it is to go on.

        Also at the end, when it has to see its SIGTERM. A debugger's stops are not reported here.
        """
        for child in self._estate.every_child:
            if times := child.continue_if_stopped():
                words = "%s (pid %d) was stopped from outside (%d times since the last line): it goes on"
                _log.warning(words, child.name, child.pid, times)

    def _say_alive(self) -> None:
        """The ping that the unit's watchdog waits for, unless a row of health withholds it."""
        if self._notify.watchdog_seconds is None:
            return
        self._loop.after(self._notify.watchdog_seconds, self._say_alive)
        reason = withheld(Facts(stuck=tuple(child.name for child in self._stuck())))
        if reason:
            _log.critical("the service manager is to start the server again: %s", reason)
            self._notify.status(reason)
        else:
            self._notify.alive()

    def _stuck(self) -> list[Child]:
        """Children that neither run nor wait for a start: what was to start them has failed itself."""
        if self._is_ending:
            return []
        return [c for c in self._estate.children if not c.is_alive and c.name not in self._waiting]

    def _spoke(self, child: Child) -> None:
        lines = child.read_status()
        if not lines and child.is_hung_up:
            self._loop.forget(child.status_fd)
        if not self._is_ending:
            self._hear(child, lines)

    def _hear(self, child: Child, lines: list[bytes]) -> bool:
        """False when the server ends because of it. What is about the whole server only control may say."""
        is_control = child is self._estate.control
        for line in lines if is_control else ():
            if line.startswith(process.LOST):
                self._lose(line.removeprefix(process.LOST).decode("utf-8", "replace"))
                return False
            if line.startswith(process.HEALTH):
                self._status_changed(line.removeprefix(process.HEALTH).decode("utf-8", "replace"))
        if is_control and process.CREDENTIALS in lines:
            self._tell_credentials()
        if process.APART in lines:
            self._start_apart()
        if process.READY in lines and not self._is_up and all(c.is_ready for c in self._estate.children):
            self._come_up()
        if process.READY in lines and self._is_up:
            self._start_spares()
        return True

    def _lose(self, words: str) -> None:
        self._failure = words
        _log.critical("the server ends: %s", words)
        self._end()

    def _come_up(self) -> None:
        try:
            ready = self._estate.open_to_the_world()
        except (OSError, StartError) as error:
            self._failure = str(error)
            self._end()
            return
        self._is_up = True
        self._start_first_spares()
        self._announce(ready)
        self._addresses = f"API {ready.api_base or 'none'}, DNS {ready.dns}"
        self._notify.ready(self._addresses)
        self._loop.is_lenient = True

    def _status_changed(self, health: str) -> None:
        """What `systemctl status` shows: where the server is, or what is not well."""
        if self._is_up:
            self._notify.status(health or self._addresses)

    def _tell_credentials(self) -> None:
        self._look_for_keys(self._estate.void_keys())
        if not self._is_up:
            return  # the ready-file is written later
        try:
            self._estate.write_ready_file()
        except StartError as error:
            _log.error("the ready-file is out of date: %s", error)

    def _ended(self, child: Child) -> None:
        if not child.can_be_buried:
            self._loop.forget(child.pidfd)
            self._loop.after(BURY_SECONDS, partial(self._look_at_grave, child, child.lives))
            return
        pid = child.pid
        self._forget(child)
        lines = child.read_status()
        words = child.bury()
        may_start_again = self._is_up or self._was_ended_by_others(child)
        if self._is_ending:
            self._go_on_ending()
            return
        if not self._hear(child, lines):  # the loop may see the end of a process before the last lines of it
            return
        if may_start_again:  # else it is the one line that the start fails with
            _log.warning("%s (pid %d) %s", child.name, pid, words)
        self._estate.words.note(child.name, words)
        for other in self._estate.ends_with(child):
            other.send(signal.SIGKILL)
        self._has_failed(child, words, may_start_again=may_start_again)

    @staticmethod
    def _was_ended_by_others(child: Child) -> bool:
        """A process that has nothing to do with why: control ends who is too slow for a write, also on a
        machine so busy that another one is not ready yet; the supervisor, who stands still.
        """
        is_by_others = child.stood_still or not child.ended_itself
        return is_by_others and not child.reason and child.lives < START_LIVES_MAX

    def _look_at_grave(self, child: Child, life: int) -> None:
        """Whether a debugger has let go of a process that ended; one that was taken is another's to bury."""
        if child.lives == life and child.is_alive:
            self._loop.watch(child.pidfd, partial(self._ended, child))

    def _has_failed(self, child: Child, words: str, *, may_start_again: bool) -> None:
        """A life is over before its time."""
        if not may_start_again:
            self._failure = self._failure or f"{child.name} could not start: {words}"
            self._end()
            return
        if child.spare is not None:
            _log.warning("%s goes on in the spare process", child.name)
            self._start(child)
            return
        delay = child.next_delay_seconds()
        _log.warning("%s starts again in %.2f s", child.name, delay)
        self._waiting.add(child.name)
        self._loop.after(delay, partial(self._start, child))

    def _say_unless_ready(self, child: Child, life: int) -> None:
        if child.lives == life and child.is_alive and not child.is_ready and not self._is_ending:
            words = f"{child.name} is not ready after {SLOW_SECONDS} s"
            words += f": {child.doing}" if child.doing else ""
            _log.warning("%s", words)
            if not self._is_up:
                self._notify.status(words)

    def _give_time_to_start(self, child: Child, life: int) -> None:
        self._loop.after_running(
            START_SECONDS_MAX, partial(self._kill_unless_ready, child, life, child.steps)
        )

    def _kill_unless_ready(self, child: Child, life: int, steps: int) -> None:
        if child.lives != life or not child.is_alive or child.is_ready:
            return
        if child.steps > steps:
            self._give_time_to_start(child, life)
            return
        child.reason = f"was not ready, and said nothing new, for {START_SECONDS_MAX} s"
        _log.error("%s (pid %d) %s", child.name, child.pid, child.reason)
        child.send(signal.SIGKILL)

    def _end_asked(self) -> None:
        if not self._is_ending:
            self._end()
            return
        self._is_forced = True
        for child in self._estate.every_child:
            child.send(signal.SIGKILL)

    def _end(self) -> None:
        """End the children in stages: who takes writes goes first, who answers from them last."""
        if self._is_ending:
            return
        self._is_ending = True
        self._loop.is_lenient = False  # what is left undone now might keep it from ending
        self._notify.ending()
        self._estate.remove_ready_file()
        self._stages_left = self._estate.stages()
        self._end_stage()

    def _end_stage(self) -> None:
        for child in self._stages_left[0]:
            child.send(signal.SIGTERM)
            self._loop.after_running(self._drain_seconds, partial(self._kill_if_alive, child))
        self._go_on_ending()

    def _go_on_ending(self) -> None:
        if any(child.is_alive for child in self._stages_left[0]):
            return
        self._stages_left.pop(0)
        if self._stages_left:
            self._end_stage()
        else:
            self._loop.stop()

    def _kill_if_alive(self, child: Child) -> None:
        if child.is_alive:
            _log.error("%s (pid %d) did not end in %g s", child.name, child.pid, self._drain_seconds)
            child.send(signal.SIGKILL)


def _look_seconds(child: Child) -> float:
    """Between two looks for silence that are as often as this child's limits need."""
    still_seconds = min(child.still_seconds_max, child.idle_still_seconds_max)
    return min(child.silence_seconds_max / LOOKS, still_seconds / LOOKS_STILL)


def _raise_descriptor_limit() -> None:
    """Children inherit it: the usual soft limit of 1024 is fewer connections than they allow."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
