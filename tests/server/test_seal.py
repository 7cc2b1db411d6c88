"""The secret of a data folder: made once, whoever asks first."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from edgestead.server import files, seal


def test_threads_that_need_the_secret_at_once_get_the_one_that_is_kept(tmp_path, monkeypatch):
    both, read_private = threading.Barrier(2), files.read_private

    def read_together(path):
        content = read_private(path)
        if content is None:
            with suppress(threading.BrokenBarrierError):  # the other one is not let in
                both.wait(1)
        return content

    monkeypatch.setattr(files, "read_private", read_together)
    with ThreadPoolExecutor(2) as threads:
        found = set(threads.map(seal.load_or_make, [tmp_path] * 2))

    assert found == {seal.load_or_make(tmp_path)}
