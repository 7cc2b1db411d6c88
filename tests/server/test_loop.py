"""The supervisor's loop, on an invented clock where time matters."""

import os
import signal

from edgestead.server.supervisor.loop import Loop


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
