"""The overview's rings of samples over a restart of control.

Owns  `DIR/samples.json`: reading it at a start, writing it now and then and at the end.
Not   what is in it (`web.samples`).

    start       there is a file of this version    its samples, as old as they are by now
                none                               charts begin
                torn, foreign, too large           charts begin, and the log says why
    running     each KEEP_SECONDS                  written whole, or not at all
    end         by SIGTERM                         written; a kill costs KEEP_SECONDS of the hour
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from edgestead.server import files
from edgestead.server.rounds import Rounds
from edgestead.web.samples import Foreign, Samples

FILE_NAME: Final = "samples.json"
FILE_BYTES_MAX: Final = 1 << 20  # ten times what both rings take
KEEP_SECONDS: Final = 300

log = logging.getLogger("edgestead.server")


class SamplesFile:
    def __init__(self, samples: Samples, folder: Path, now_us: Callable[[], int]) -> None:
        self._samples, self._path, self._now_us = samples, folder / FILE_NAME, now_us

    def read(self) -> None:
        """Before the first sample."""
        try:
            with self._path.open("rb") as stream:
                octets = stream.read(FILE_BYTES_MAX + 1)
            if len(octets) > FILE_BYTES_MAX:
                raise Foreign(f"it is larger than {FILE_BYTES_MAX} bytes")
            self._samples.go_on(octets, self._now_us())
        except FileNotFoundError:
            return
        except (OSError, Foreign) as error:
            log.warning("%s is ignored, the dashboard's charts begin anew: %s", self._path, error)

    async def run(self) -> None:
        """Until it is cancelled."""
        what = "keeping the dashboard's samples"
        await Rounds(what, KEEP_SECONDS, self._keep, first_seconds=KEEP_SECONDS).go_on()

    async def _keep(self) -> None:
        content = self._samples.encoded(self._now_us())
        await asyncio.to_thread(self._write, content)

    def write(self) -> None:
        self._write(self._samples.encoded(self._now_us()))

    def _write(self, content: bytes) -> None:
        try:
            files.replace_private(self._path, content)
        except OSError as error:
            log.warning("the dashboard's samples are not kept over a restart: %s", error)
