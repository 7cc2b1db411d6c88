"""The rate limiter, on invented time: no test waits for a window to end."""

import asyncio


def test_so_many_pass_and_the_next_one_waits_for_the_window(objects):
    client = objects.RateLimiter["client-7"]

    taken = [client.take(limit=3, window_seconds=60)["allowed"] for _ in range(5)]
    assert taken == [True, True, True, False, False]

    objects.advance(client.take(limit=3)["resets_in_seconds"])
    assert client.take(limit=3) == {"allowed": True, "left": 2, "resets_in_seconds": 60}


def test_clients_do_not_count_for_one_another(objects):
    assert objects.RateLimiter["a"].take(limit=1)["allowed"]
    assert objects.RateLimiter["b"].take(limit=1)["allowed"]
    assert not objects.RateLimiter["a"].take(limit=1)["allowed"]


def test_callers_at_the_same_moment_never_share_the_last_token(objects):
    async def ten_at_once(env):
        return await asyncio.gather(*(env.RateLimiter["c"].take(limit=4) for _ in range(10)))

    assert sum(answer["allowed"] for answer in objects.run(ten_at_once)) == 4


def test_a_crash_forgets_nothing(objects):
    client = objects.RateLimiter["client-7"]
    client.take(limit=2)

    objects.crash()

    assert client.used() == 1


def test_a_counter_can_be_reset(objects):
    client = objects.RateLimiter["client-7"]
    client.take(limit=1)

    client.forget()

    assert objects.storage(client).list() == {}
    assert client.take(limit=1)["allowed"]
