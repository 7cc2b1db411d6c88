"""A process that follows the feed and shows what it serves.

Run as `python worker.py ADDRESS GROUP HOW KINDS`.
HOW is `thread` or `loop`. Every change is one line on the standard output: the sequence applied, and the
key's document; `serve` when it may serve. A document `hang` stops the process from applying for ever.
"""

import asyncio
import sys
import threading
import time

from edgestead.feed.follower import Follower
from edgestead.feed.follower_loop import LoopFollower
from edgestead.feed.follower_thread import ThreadFollower


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Shown:
    def begin(self):
        say("begin")

    def load(self, changes):
        self.apply(changes)

    def swap(self):
        say("swap")

    def apply(self, changes):
        for change in changes:
            if change.doc == b"hang":
                time.sleep(3600)
            text = "-" if change.doc is None else change.doc[:20].decode()
            say(f"{change.sequence} {change.key} {text}")


def follow_on_a_thread(address, follower):
    following = ThreadFollower(address, follower)
    threading.Thread(target=following.run, daemon=True).start()
    following.wait_until_may_serve()
    say("serve")
    threading.Event().wait()


async def follow_on_a_loop(address, follower):
    following = LoopFollower(address, follower)
    task = asyncio.create_task(following.run())
    await following.wait_until_may_serve()
    say("serve")
    await task


def main(address, group, how, kinds):
    follower = Follower(
        Shown(), group=group, name=f"{group}-{how}", kinds=tuple(filter(None, kinds.split(",")))
    )
    if how == "loop":
        asyncio.run(follow_on_a_loop(address, follower))
    else:
        follow_on_a_thread(address, follower)


if __name__ == "__main__":
    main(*sys.argv[1:])
