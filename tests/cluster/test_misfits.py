"""A copy that does not fit the log is loaded again at once, and then ever more rarely."""

from edgestead.server.cluster.misfits import SECONDS_MAX, Misfits


def test_the_first_try_waits_for_nothing_and_later_ones_longer_each(tmp_path):
    pauses = []
    for _ in range(9):
        pauses.append(Misfits(tmp_path).pause_seconds)
        Misfits(tmp_path).happened()  # of the life before

    assert pauses == [0, 0, 4, 8, 16, 32, 60, 60, SECONDS_MAX]


def test_a_node_that_follows_again_has_forgotten(tmp_path):
    for _ in range(3):
        Misfits(tmp_path).happened()
    Misfits(tmp_path).follows()
    Misfits(tmp_path).follows()

    assert (Misfits(tmp_path).count, Misfits(tmp_path).pause_seconds) == (0, 0)


def test_a_file_that_is_not_a_number_counts_for_nothing(tmp_path):
    Misfits(tmp_path).happened()
    next(tmp_path.iterdir()).write_bytes(b"\xff")

    assert Misfits(tmp_path).pause_seconds == 0
