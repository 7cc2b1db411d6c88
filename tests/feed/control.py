"""A promise on invented time: no process, no socket, no clock."""

from edgestead.feed.promise import TICK_MS, Promise
from edgestead.feed.protocol import Changes, Register
from edgestead.store.changes import Change

FEED = "the-feed"


class Control:
    """A promise and everything that it asked for, in order."""

    def __init__(self, head=0, tail=(), **settings):
        self.done = []
        self.works = {}  # by consumer; without: busy
        self.now_ms = 0.0
        self.promise = Promise(FEED, head, tail, self, now_ms=lambda: self.now_ms, **settings)
        self.forget()

    def send(self, consumer, message):
        self.done.append((consumer, message))

    def make_snapshot(self, consumer, kinds):
        self.done.append((consumer, "make snapshot"))

    def send_snapshot(self, consumer, sequence):
        self.done.append((consumer, f"snapshot {sequence}"))

    def work(self, consumer):
        return self.works.get(consumer)

    def kill(self, consumer):
        self.done.append((consumer, "kill"))

    def disconnect(self, consumer):
        self.done.append((consumer, "disconnect"))

    def applied_upto(self, sequence):
        self.done.append(f"applied {sequence}")

    def leased_upto(self, sequence):
        self.done.append(f"leased {sequence}")

    def forget(self):
        self.done.clear()

    def take(self):
        done, self.done = self.done, []
        return done

    def commit(self, *firsts, kind="name", size=0):
        """One change per entry: the group that must have it first, or an empty text."""
        head = self.promise.head
        self.promise.committed([change(head + n, first, kind, size) for n, first in enumerate(firsts, 1)])

    def pass_ms(self, milliseconds):
        for _ in range(round(milliseconds / TICK_MS)):
            self.now_ms += TICK_MS
            self.promise.tick(self.now_ms)

    def join(self, consumer, group="dns", kinds=()):
        """Through the whole joining: snapshot, ack, serve."""
        self.promise.register(consumer, hello(group, kinds=kinds))
        self.promise.snapshot_ready(consumer, self.promise.head)
        self.promise.acked(consumer, self.promise.head)
        assert self.promise.live(group)
        self.forget()


def hello(group="dns", *, after=-1, feed_id=FEED, serving=False, kinds=()):
    return Register(group, f"{group}-1", kinds, feed_id, after, serving)


def change(sequence, first="", kind="name", size=0):
    return Change(sequence, "zone", kind, "key", bytes(size), first)


def changes(after, *sequences, upto=None, **kind):
    return Changes(after, upto or sequences[-1], tuple(change(s, **kind) for s in sequences))
