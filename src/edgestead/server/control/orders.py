"""The task that has certificates issued: due steps, one after the other, each on a thread.

Owns  rounds and pauses; which authority is next; accounts; waiting until name servers show a proof.
      What cannot be written of a step (the disk is full) is kept here: the row waits, and the others do not.
Not   what a step writes (`usecases.certificate.orders`), when it is due (`usecases.certificate.states`), what
      an authority is asked (`server.control.authority`). No request or query waits for this.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from edgestead.model.call import Call
from edgestead.model.counters import Page, slot
from edgestead.model.refusals import EdgeError
from edgestead.server.control.apart import apart
from edgestead.server.control.authority import Account, Authority, Registered, Trouble, new_key
from edgestead.server.control.pauses import Pauses
from edgestead.server.control.targets import Data
from edgestead.server.rounds import Rounds
from edgestead.tables import certificates as rows
from edgestead.tables.certificates import AccountRow, CertificateRow
from edgestead.usecases.certificate import orders, reading, states
from edgestead.usecases.certificate.states import Progress, read_progress
from edgestead.usecases.platform import Platform
from edgestead.usecases.serving import proofs
from edgestead.usecases.serving.certificates import CUSTOM

POLL_SECONDS: Final = 1.0
LOOK_SECONDS = 3.0  # between two looks for zones that should have a certificate
LOOK_SHARE = 50  # a look takes at most one part in so many of the time: there may be a million records
STEPS_MAX: Final = 16  # of one round: each takes as long as an authority does, some 0.3 s
SHOWN_SECONDS_MAX: Final = 120.0  # for secondaries to show a proof; then the authority looks for itself
SHOWN_AGAIN_SECONDS: Final = 2.0
EDGE_SECONDS: Final = 6.0  # for the edge to show a proof: it looks for news every two seconds

_STATES = slot("edge_certificates", states.STATES[0])
_OUTCOMES = {outcome: slot("edge_certificate_orders_total", outcome) for outcome in ("issued", "failed")}
_THREAD: Final = "authority"
_log = logging.getLogger("edgestead.server")

Open = Callable[[str, Account, Registered], Authority]
"""An authority by the URL of its directory."""
Shows = Callable[[Sequence[tuple[str, str]]], Awaitable[bool]]
"""Whether every secondary that is known shows these TXT records, by name and value."""


class OrdersPart:
    """Make it on control's loop, call `round` every POLL_SECONDS, or have `open` do that.

    `directories` are the authorities in the order in which they are asked. `open_authority` is called for the
    first order at one.
    """

    def __init__(
        self,
        data: Data,
        platform: Platform,
        page: Page,
        call: Callable[[], Call],
        *,
        email: str,
        directories: Sequence[str],
        open_authority: Open,
        shows: Shows,
    ) -> None:
        self._data = data
        self._platform = platform
        self._page = page
        self._call = call
        self._email = email
        self._directories = directories
        self._open_authority = open_authority
        self._shows = shows
        self._authorities: dict[str, Authority] = {}
        self._look_at = 0.0
        self._pauses = Pauses()
        rounds = Rounds("a round of certificates", POLL_SECONDS, self._work)
        self.open, self.close = rounds.open, rounds.close
        self._steps: Mapping[str, Callable[[CertificateRow, Progress], Awaitable[None]]] = {
            states.WANTED: self._order,
            states.ORDERED: self._publish,
            states.PROVING: self._prove,
            states.READY: self._finish,
            states.ISSUED: self._renew,
            states.FAILED: self._again,
        }

    async def _work(self) -> None:
        """All that is due."""
        while await self.round():
            pass

    async def round(self) -> int:
        """Take the steps that are due. Returns how many there were."""
        await self._look()
        due = self._due()
        for row in due:
            await self._step(row)
        if due:
            self.show()
        return len(due)

    def _due(self) -> list[CertificateRow]:
        """What waits because nothing can be written of it is due in the table all the while."""
        now_us = self._call().now_us
        paused = self._pauses.running(now_us)
        limit = STEPS_MAX + len(paused)
        found = self._data.read(lambda reader: rows.due(reader, now_us, limit))
        return [row for row in found if (row.id, row.due_us) not in paused][:STEPS_MAX]

    async def _look(self) -> None:
        """For zones that should have a certificate; on a thread, since that goes through many records."""
        time = asyncio.get_running_loop().time
        began = time()
        if began < self._look_at:
            return
        self._look_at = began + LOOK_SECONDS  # also where it fails
        found = await apart(_THREAD, self._data.read, orders.zones_without)
        others = await apart(_THREAD, self._data.read, orders.changed_hosts)
        ended = time()
        self._look_at = ended + max(LOOK_SECONDS, LOOK_SHARE * (ended - began))
        if found:
            await self._data.write(lambda tx: orders.begin(self._call(), tx, self._platform, found))
        for row, hosts in others:
            await self._order_for(row, hosts)

    async def _order_for(self, row: CertificateRow, hosts: tuple[str, ...]) -> None:
        await self._data.write(lambda tx: orders.order_for(self._call(), tx, row, hosts))

    def show(self) -> None:
        """The gauges of states."""
        counts = self._data.read(lambda reader: rows.count_states(reader, CUSTOM))
        for offset, state in enumerate(states.STATES):
            self._page.set(_STATES + offset, counts.get(state, 0))

    async def _step(self, row: CertificateRow) -> None:
        try:
            await self._take(row)
        except Exception:
            self._pauses.begin((row.id, row.due_us), self._call().now_us)
            _log.warning("a step of the certificate for %s could not be finished", row.hosts, exc_info=True)
        else:
            self._pauses.forget(row.id)

    async def _take(self, row: CertificateRow) -> None:
        progress = read_progress(row.body)
        try:
            await self._steps[row.state](row, progress)
        except Trouble as trouble:
            await self._vain(row, progress, trouble)
        except EdgeError as refused:  # a chain that is none; the disk is full; the seal is another one
            await self._vain(row, progress, Trouble(str(refused), passes=False))
        except Exception as error:  # it would come first in each round, and keep everybody else from theirs
            _log.exception("a step of the certificate for %s failed", row.hosts)
            words = f"{type(error).__name__}; the log says more"
            await self._vain(row, progress, Trouble(words, passes=True))

    async def _vain(self, row: CertificateRow, progress: Progress, trouble: Trouble) -> None:
        """Try again in this state, or give the order up."""
        call, words = self._call(), str(trouble)
        if row.state == states.ISSUED:  # it only asked when to renew
            again_us = call.now_us + states.RENEWAL_ASKED_SECONDS * states.SECOND_US
            await self._data.write(lambda tx: orders.postponed(call, tx, row, again_us))
            return
        if trouble.passes and not trouble.retry_after_seconds and progress.tries < states.TRIES_MAX:
            due_us = states.next_try_us(call.now_us, progress.tries)
            await self._data.write(lambda tx: orders.tried(call, tx, row, words, due_us))
            return
        due_us = states.next_order_us(
            call.now_us, progress.failures + 1, len(self._directories), trouble.retry_after_seconds
        )
        done = await self._data.write(lambda tx: orders.failed(call, tx, self._platform, row, words, due_us))
        if done:
            self._page.add(_OUTCOMES["failed"])
            seconds = (due_us - call.now_us) // states.SECOND_US
            _log.warning(
                "no certificate for %s from %s: %s; the next try is in %d s",
                row.hosts,
                self._directory(progress),
                words,
                seconds,
            )

    # A step each: what is asked of the authority, then what is written.

    async def _order(self, row: CertificateRow, progress: Progress) -> None:
        if not self._data.read(lambda reader: orders.is_wanted(reader, row)):
            await self._data.write(lambda tx: orders.remove(self._call(), tx, self._platform, row))
            return
        directory = self._directories[progress.failures % len(self._directories)]
        authority = await self._authority(directory)
        order_url = await apart(_THREAD, authority.order, orders.wanted_hosts(row))
        sealed = self._platform.seal.wrap(row.zone_id, new_key())
        method = self._data.read(lambda reader: orders.method_of(reader, row.zone_id))
        await self._data.write(
            lambda tx: orders.ordered(self._call(), tx, row, directory, method, order_url, sealed)
        )

    async def _publish(self, row: CertificateRow, progress: Progress) -> None:
        authority = await self._authority(self._directory(progress))
        wanted = await apart(_THREAD, authority.proofs, progress.order_url, progress.method)
        await self._data.write(lambda tx: orders.proving(self._call(), tx, self._platform, row, wanted))

    async def _prove(self, row: CertificateRow, progress: Progress) -> None:
        """That the write came back means that every DNS process of ours shows the proofs."""
        call = self._call()
        found = self._data.read(lambda reader: rows.proofs_of(reader, row.id))
        waited_seconds = (call.now_us - progress.since_us) / states.SECOND_US
        if progress.method != proofs.TXT:
            is_early = waited_seconds < EDGE_SECONDS
        else:
            is_early = waited_seconds < SHOWN_SECONDS_MAX and not await self._shows(found)
        if is_early:
            due_us = call.now_us + int(SHOWN_AGAIN_SECONDS * states.SECOND_US)
            await self._data.write(lambda tx: orders.postponed(call, tx, row, due_us))
            return
        authority = await self._authority(self._directory(progress))
        if await apart(_THREAD, authority.prove, progress.order_url, progress.method):
            await self._data.write(lambda tx: orders.ready(self._call(), tx, row))
        else:
            await self._wait(row, progress, "the authority has not looked at the proofs yet")

    async def _finish(self, row: CertificateRow, progress: Progress) -> None:
        authority = await self._authority(self._directory(progress))
        hosts = orders.wanted_hosts(row)
        key = self._platform.seal.unwrap(row.zone_id, row.next_sealed)
        chain = await apart(_THREAD, authority.finish, progress.order_url, key, hosts)
        if chain is None:
            await self._wait(row, progress, "the authority has not issued it yet")
            return
        pair = reading.checked(chain, key.decode(), self._call().now_us)
        if not set(hosts) <= set(pair.facts.hosts):
            raise Trouble(f"the certificate is for {', '.join(pair.facts.hosts)}", passes=False)
        renew_us = await self._renewal_us(authority, row.id, chain, pair.facts.starts_us, pair.facts.ends_us)
        done = await self._data.write(
            lambda tx: orders.issued(self._call(), tx, self._platform, row, pair, renew_us)
        )
        if done:
            self._page.add(_OUTCOMES["issued"])
            _log.info("a certificate for %s came from %s", row.hosts, self._directory(progress))

    async def _renew(self, row: CertificateRow, progress: Progress) -> None:
        call = self._call()
        if not self._data.read(lambda reader: orders.is_wanted(reader, row)):
            if row.ends_us <= call.now_us:
                await self._data.write(lambda tx: orders.remove(call, tx, self._platform, row))
                return
            # Names may be proxied again by then.
            look_us = call.now_us + states.RENEWAL_ASKED_SECONDS * states.SECOND_US
            await self._data.write(lambda tx: orders.postponed(call, tx, row, min(row.ends_us, look_us)))
            return
        if call.now_us < states.renewal_us(row.id, row.starts_us, row.ends_us):
            authority = await self._authority(self._directory(progress))
            due_us = await self._renewal_us(authority, row.id, row.chain, row.starts_us, row.ends_us)
            if due_us > call.now_us:
                await self._data.write(lambda tx: orders.postponed(call, tx, row, due_us))
                return
        await self._data.write(lambda tx: orders.again(call, tx, row))

    async def _again(self, row: CertificateRow, _progress: Progress) -> None:
        await self._data.write(lambda tx: orders.again(self._call(), tx, row))

    async def _wait(self, row: CertificateRow, progress: Progress, words: str) -> None:
        await self._vain(row, progress, Trouble(words, passes=True))

    async def _renewal_us(
        self, authority: Authority, certificate_id: str, chain: str, starts_us: int, ends_us: int
    ) -> int:
        """When to look at a certificate again: its renewal, or the next question for its time.

        An authority may have a certificate renewed early (RFC 9773); later than two thirds of its life only
        its own window says, and no later than half of what is left then.
        """
        own_us = states.renewal_us(certificate_id, starts_us, ends_us)
        try:
            said = await apart(_THREAD, authority.renewal, chain)
        except Trouble:
            return min(own_us, self._call().now_us + states.RENEWAL_ASKED_SECONDS * states.SECOND_US)
        if said.renew_us is None:
            return own_us
        return min(said.renew_us, said.again_us, own_us)

    def _directory(self, progress: Progress) -> str:
        return progress.directory if progress.directory in self._directories else self._directories[0]

    async def _authority(self, directory: str) -> Authority:
        """Its account's key is stored before it is told: a kill in between makes no second account."""
        if directory not in self._authorities:
            account = self._data.read(lambda reader: rows.account(reader, directory))
            if account is None or account.email != self._email:
                sealed = self._platform.seal.wrap(directory, new_key())
                account = AccountRow(directory, self._email, "", sealed)
                await self._data.write(lambda tx: rows.put_account(tx, account))
            key = self._platform.seal.unwrap(directory, account.sealed)
            loop = asyncio.get_running_loop()

            def registered(url: str) -> None:
                known = account._replace(url=url)
                done = asyncio.run_coroutine_threadsafe(
                    self._data.write(lambda tx: rows.put_account(tx, known)), loop
                )
                done.result()

            self._authorities[directory] = self._open_authority(
                directory, Account(account.email, account.url, key), registered
            )
        return self._authorities[directory]
