"""Managed rules in an edge process: read, made ready, made fast.

Owns  when rules are read and compiled, and by whom; what happens when they cannot be.
Not   rules, requests.

Reading takes half a second, on a thread. From then on requests are inspected, rule by rule. Compiling takes
tens of seconds, in a process of its own that yields to all others, and only where a rule executes the
ruleset; when it is done inspections are fast, with the same outcome. Where it fails it is tried again.
"""

import asyncio
import gc
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from edgestead.crs import (
    ANOMALY_RULE_ID,
    RULESET_ID,
    Catalogue,
    RulesMissing,
    RulesUnreadable,
    build_catalogue,
    load,
    parse,
)
from edgestead.edge.tools.engines import ManagedRules
from edgestead.server import waf_part
from edgestead.server.messages import EdgeStart
from edgestead.waf.engine import Engine
from edgestead.waf.load.compile import RuleSet
from edgestead.waf.plan import scan

PREPARE_SECONDS = 5.0  # after which rules are read although nobody executes them yet
AGAIN_SECONDS = 600.0  # after compiling in vain: each try may take half a minute of a core
_log = logging.getLogger("edgestead.server")


class Read(NamedTuple):
    rule_set: RuleSet
    catalogue: Catalogue


def managed_of(start: EdgeStart) -> ManagedRules:
    return ManagedRules(
        start.managed_ruleset_id or RULESET_ID,
        start.anomaly_rule_id or ANOMALY_RULE_ID,
        start.managed_response_bytes,
    )


def read(path: Path | None, ruleset_id: str, anomaly_rule_id: str) -> Read:
    """Raises RulesMissing, RulesUnreadable, ValueError (RuleError is one): what `crs` or `waf` refuse."""
    files = load(path)
    program = parse(files.files, files.entries)
    catalogue = build_catalogue(program, ruleset_id=ruleset_id, anomaly_rule_id=anomaly_rule_id)
    return Read(RuleSet(program, catalogue), catalogue)


class RulesPart:
    """`executed` tells whether some rule executes the managed ruleset."""

    def __init__(self, start: EdgeStart, managed: ManagedRules, executed: Callable[[], bool]) -> None:
        self._start = start
        self.managed = managed
        self._is_executed = executed
        self._executed = asyncio.Event()
        self.is_slow = False  # they are ready without Hyperscan, and compiling them was in vain so far

    def look(self) -> None:
        """What the feed says has changed."""
        if not self._executed.is_set() and self._is_executed():
            self._executed.set()

    async def run(self) -> None:
        """Make the rules ready, then fast. Ends when there is nothing more to do."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PREPARE_SECONDS):
                await self._executed.wait()
        found = await asyncio.to_thread(self._read)
        if found is None:
            return
        self.managed.ready(Engine(found.rule_set), found.catalogue)
        if not scan.available():
            self.is_slow = True
            if self._start.worker == 0:
                _log.warning("managed rules: %s; each rule looks at each request by itself", scan.state())
            return
        await self._executed.wait()
        while (engine := await self._fast(found.rule_set)) is None:
            self.is_slow = True
            await asyncio.sleep(AGAIN_SECONDS)
        self.is_slow = False
        self.managed.ready(engine, found.catalogue)
        # Not `rest_collector`: to collect takes 8 ms or more of the loop, and of the hundred thousand objects
        # that reading made some fifty are garbage. They stay.
        gc.freeze()
        _log.info("managed rules: %s, ready", found.catalogue.description)

    def _read(self) -> Read | None:
        start = self._start
        self.managed.begin()
        try:
            path = Path(start.crs) if start.crs else None
            found = read(path, self.managed.ruleset_id, self.managed.anomaly_rule_id)
        except RulesMissing:
            self.managed.missing()  # control has said so already
            return None
        except (RulesUnreadable, ValueError) as error:
            self.managed.missing()
            _log.error("managed rules cannot be used: %s", error)
            return None
        for note in found.rule_set.notes if start.worker == 0 else ():
            _log.warning("managed rules: %s", note)
        return found

    async def _fast(self, rule_set: RuleSet) -> Engine | None:
        try:
            stored = await self._stored(rule_set)
            return await asyncio.to_thread(Engine, rule_set, stored=stored)
        except (OSError, ValueError) as error:  # the disk is full; the process was killed
            words = "managed rules: inspections stay slow for %d minutes, each rule looks by itself: %s"
            _log.error(words, AGAIN_SECONDS / 60, error)
            return None

    async def _stored(self, rule_set: RuleSet) -> bytes:
        """The compiled database. Raises OSError, ValueError."""
        folder = Path(self._start.rules_dir)
        kept = await asyncio.to_thread(waf_part.kept, rule_set, folder)
        if kept is not None:
            return kept
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "edgestead.server.waf_make"),
            *(self._start.crs or "", str(folder), str(self._start.log_level), self._start.log_form),
            stdin=asyncio.subprocess.DEVNULL,
        )
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            process.kill()
            raise
        kept = await asyncio.to_thread(waf_part.kept, rule_set, folder)
        if kept is None:
            raise ValueError(f"the process that compiles them ended with {code}")
        return kept
