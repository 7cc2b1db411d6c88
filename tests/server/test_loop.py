"""The supervisor's loop, on an invented clock where time matters."""

import os
import signal

import pytest

from edgestead.server.supervisor.loop import ERRORS_MAX, ERRORS_SECONDS, Loop


class Clock:
    """Moves by itself: each look takes a second."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        self.seconds += 1.0
        return self.seconds


def test_timers_run_in_the_order_of_their_times():
    loop, said = Loop(Clock()), []
    loop.after(9, loop.stop)
    loop.after(5, lambda: said.append("second"))
    loop.after(1, lambda: said.append("first"))

    loop.run()

    assert said == ["first", "second"]


def test_a_descriptor_is_heard_until_it_is_forgotten():
    loop, said = Loop(Clock()), []
    read, write = os.pipe()

    def heard():
        said.append(os.read(read, 1))
        if len(said) == 2:
            loop.forget(read)
            loop.after(1, loop.stop)

    loop.watch(read, heard)
    os.write(write, b"abc")
    loop.run()

    assert said == [b"a", b"b"]
    os.close(read)
    os.close(write)


def test_a_callback_that_forgets_its_neighbour_is_the_last_to_hear_of_it():
    loop, said = Loop(Clock()), []
    pipes = [os.pipe(), os.pipe()]
    for read, write in pipes:
        loop.watch(read, lambda mine=read: (said.append(mine), [loop.forget(r) for r, _ in pipes]))
        os.write(write, b"x")
    loop.after(0, loop.stop)

    loop.run()

    assert len(said) == 1
    for pair in pipes:
        os.close(pair[0])
        os.close(pair[1])


def test_a_signal_is_a_callback_like_any_other():
    before = signal.getsignal(signal.SIGUSR1)
    loop, said = Loop(Clock()), []
    loop.on_signals((signal.SIGUSR1,), lambda: (said.append("usr1"), loop.stop()))
    os.kill(os.getpid(), signal.SIGUSR1)

    loop.run()

    signal.signal(signal.SIGUSR1, before)
    signal.set_wakeup_fd(-1)
    assert said == ["usr1"]


def test_time_that_somebody_is_given_passes_only_while_the_loop_runs():
    """A machine that slept for an hour: the timer of then is due, what was given has not passed."""
    seconds, said = [0.0], []
    loop = Loop(lambda: seconds[0])

    def freeze():
        seconds[0] += 3_600
        loop.after(0, look)

    def look():
        said.append("look")
        seconds[0] += 0.5
        if "over" not in said:
            loop.after(0, look)

    def over():
        said.append("over")
        loop.stop()

    loop.after_running(10, over)
    loop.after(0, freeze)
    loop.run()

    assert said.count("look") >= 2 * 9


def fails():
    raise ValueError("nobody foresaw this")


def test_a_lenient_loop_outlives_a_callback_that_fails(caplog):
    loop, said = Loop(Clock()), []
    loop.is_lenient = True
    read, write = os.pipe()
    loop.watch(read, lambda: (os.read(read, 1), fails()))
    os.write(write, b"a")
    loop.after(1, fails)
    loop.after(2, lambda: said.append("the next one"))
    loop.after(9, loop.stop)

    loop.run()

    assert (said, len(caplog.messages)) == (["the next one"], 2)
    os.close(read)
    os.close(write)


def test_a_loop_that_is_not_lenient_ends_with_the_first_error():
    """So is the supervisor's before the server is up, and while it ends."""
    loop = Loop(Clock())
    loop.after(1, fails)

    with pytest.raises(ValueError, match="foresaw"):
        loop.run()


def test_what_fails_again_and_again_ends_a_lenient_loop():
    """As the callback of a descriptor does, which stays readable."""
    loop, times = Loop(lambda: 0.0), []
    loop.is_lenient = True
    read, write = os.pipe()
    loop.watch(read, lambda: (times.append(1), fails()))
    os.write(write, b"a")

    with pytest.raises(ValueError, match="foresaw"):
        loop.run()

    assert len(times) == ERRORS_MAX
    os.close(read)
    os.close(write)


def test_what_fails_now_and_then_ends_no_lenient_loop():
    seconds, times = [0.0], []
    loop = Loop(lambda: seconds[0])
    loop.is_lenient = True

    def now_and_then():
        seconds[0] += ERRORS_SECONDS / (ERRORS_MAX - 2)
        times.append(1)
        loop.after(0, now_and_then if len(times) < 3 * ERRORS_MAX else loop.stop)
        fails()

    loop.after(0, now_and_then)
    loop.run()

    assert len(times) == 3 * ERRORS_MAX


def test_a_signal_that_came_with_one_whose_callback_fails_is_heard():
    numbers = (signal.SIGUSR1, signal.SIGUSR2)
    before = [signal.getsignal(one) for one in numbers]
    loop = Loop(Clock())
    loop.is_lenient = True
    loop.on_signals(numbers[:1], fails)
    loop.on_signals(numbers[1:], loop.stop)
    for number in numbers:
        os.kill(os.getpid(), number)

    loop.run()

    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    signal.set_wakeup_fd(-1)
