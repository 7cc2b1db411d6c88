"""The examples of stateful objects under load at the nodes of a demo, and what has to be so at the end.

Owns  a client for each example, what it was told, and its invariants.
Not   who is killed meanwhile.

An answer that did not come, or was not 200, may have been written: so each invariant has two sides, of what
was acknowledged and of what was asked.
"""

import http.client
import itertools
import sys
from collections import Counter
from pathlib import Path

from edgestead.cli.cluster import demo
from edgestead.testing.server import wait_until
from tests.support.beside import Beside

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SETTINGS = Path(__file__).with_name("objects_settings.py")  # behind the examples: it changes them
OBJECTS = (
    *(str(EXAMPLES / f"{name}.py") for name in ("booking", "leaderboard", "work_queue")),
    str(SETTINGS),
)
COPIES = 4  # objects of each example, so that they are on several nodes
HOLD_SECONDS = 2  # of a seat that nobody pays
PAUSE_SECONDS = 0.02
SECONDS_MAX = 300
FAILED = (OSError, http.client.HTTPException)


def until(is_true, say):
    """Wait for a condition, longer than a take-over takes on a busy machine; then `say` what is so."""
    try:
        wait_until(is_true, SECONDS_MAX)
    except TimeoutError:
        raise AssertionError(f"not so after {SECONDS_MAX} s: {say()}") from None


class Client:
    """Calls its example's objects again and again, at the nodes in turn."""

    name = ""

    def __init__(self, place, run):
        self.place, self.run, self.answered, self.unanswered = place, run, 0, 0
        self._turn = itertools.count()

    def ask(self, number, method, *arguments):
        """The result in a tuple, or nothing: then it may have run."""
        node = self.place.nodes[next(self._turn) % len(self.place.nodes)]
        try:
            status, answer = demo.ask_object(node, f"{self.path(number)}/{method}", *arguments)
        except FAILED:
            status, answer = 0, None
        self.answered += status == 200
        self.unanswered += status != 200
        return (answer["result"],) if status == 200 else ()

    def path(self, number):
        return f"{self.name}/{self.run}-{number % COPIES}"

    def ask_until_answered(self, number, method, *arguments):
        """Only what may run twice."""
        found = []

        def is_answered():
            found.extend(self.ask(number, method, *arguments))
            return bool(found)

        until(is_answered, lambda: f"{self.path(number)}/{method} is answered")
        return found[-1]


class Bookings(Client):
    """Seats are held, half of them paid: nobody loses one that was sold, and the others become free."""

    name = "Booking"

    def __init__(self, place, run):
        super().__init__(place, run)
        self.sold, self.asked, self.twice = {}, set(), []

    def step(self, number):
        seat, who = f"{number // 3}", f"visitor-{number}"  # three want each seat
        held = self.ask(number // 3, "hold", seat, who, HOLD_SECONDS)
        key = ((number // 3) % COPIES, seat)
        if (True,) == held and key in self.sold:
            self.twice.append((key, who))
        if held and (number // 3) % 2:
            self.asked.add((key, who))
            if self.ask(number // 3, "pay", seat, who) == (True,):
                if key in self.sold:
                    self.twice.append((key, who))
                self.sold[key] = who

    def check(self):
        assert self.twice == [], "seats were given to two"
        seats = {}
        for copy in range(COPIES):

            def only_sold_ones(copy=copy):
                seats[copy] = self.ask_until_answered(copy, "seats")
                return all(one["sold"] for one in seats[copy].values())

            until(only_sold_ones, lambda c=copy: f"seats of {c} are free: {seats[c]}")
        for (copy, seat), who in self.sold.items():
            assert seats[copy].get(seat) == {"name": who, "sold": True}
        for copy, found in seats.items():
            for seat, one in found.items():
                assert ((copy, seat), one["name"]) in self.asked
        return len(self.sold)


class Scores(Client):
    """Games are recorded: each one counts once, and the best score stays."""

    name = "Leaderboard"

    def __init__(self, place, run):
        super().__init__(place, run)
        self.acked, self.asked, self.best, self.best_asked = Counter(), Counter(), Counter(), Counter()

    def step(self, number):
        player, score = (number % COPIES, f"player-{number % 7}"), number * 7919 % 10_007
        self.asked[player] += 1
        self.best_asked[player] = max(self.best_asked[player], score)
        if found := self.ask(number, "submit", player[1], score):
            self.acked[player] += 1
            self.best[player] = max(self.best[player], score)
            assert found[0]["games"] >= self.acked[player]
            assert found[0]["best"] >= self.best[player]

    def check(self):
        for (copy, name), asked in self.asked.items():
            player, before = (copy, name), self.unanswered
            found = self.ask_until_answered(copy, "submit", name, 0)
            more = 1 + self.unanswered - before
            assert self.acked[player] < found["games"] <= asked + more
            assert self.best[player] <= found["best"] <= self.best_asked[player]
        return sum(self.acked.values())


class Jobs(Client):
    """Jobs are added and done: none that was acknowledged is lost, none is done twice, none is another's."""

    name = "WorkQueue"

    def __init__(self, place, run):
        super().__init__(place, run)
        self.added, self.done, self.perhaps, self.wrong = {}, set(), set(), []

    def step(self, number):
        if number % 2:
            self.work(number)
        elif found := self.ask(number // 2, "add", number):
            if self.added.setdefault((number // 2 % COPIES, found[0]), number) != number:
                self.wrong.append(("one number for two jobs", found[0]))

    def work(self, number):
        """Claim a job, if there is one, and do it."""
        copy, worker = number // 2 % COPIES, f"worker-{number}"
        found = self.ask(copy, "claim", worker)
        if not found or found[0] is None:
            return
        job = (copy, found[0]["id"])
        if self.added.get(job, found[0]["payload"]) != found[0]["payload"]:
            self.wrong.append(("a job with another's payload", job))
        if job in self.done:
            self.wrong.append(("done, and given again", job))
        done = self.ask(copy, "done", job[1], worker)
        if done == (True,):
            self.done.add(job)
        elif not done:
            self.perhaps.add(job)

    def check(self):
        number = itertools.count(1)
        for copy in range(COPIES):

            def is_empty(copy=copy):
                self.work(2 * (copy + COPIES * next(number)))
                return self.ask(copy, "count") == (0,)

            until(is_empty, lambda c=copy: f"jobs of {c} are done: {self.ask(c, 'count')} left")
        assert self.wrong == []
        assert self.added.keys() <= self.done | self.perhaps
        return len(self.added)


class Load(Beside):
    """The three under load, from making to `check`."""

    def __init__(self, place, run):
        super().__init__()
        self.clients = [kind(place, run) for kind in (Bookings, Scores, Jobs)]
        self._failures = []
        for client in self.clients:
            self.run_beside(self._run, client)

    def _run(self, client):
        for number in itertools.count():
            if self._ended.wait(PAUSE_SECONDS):
                return
            try:
                client.step(number)
            except AssertionError:
                self._failures.append(sys.exc_info()[1])

    def wait_for(self, more):
        """So many more answers to each of them."""
        wanted = [client.answered + more for client in self.clients]
        until(
            lambda: all(c.answered >= w for c, w in zip(self.clients, wanted, strict=True)),
            lambda: [
                (c.name, c.answered, c.unanswered, w) for c, w in zip(self.clients, wanted, strict=True)
            ],
        )

    def check(self):
        """How much of each was acknowledged; after the end."""
        assert self._failures == []
        return [client.check() for client in self.clients]
