"""Work that goes on in threads beside a test, from the beginning of a `with` to its end."""

import threading
from collections.abc import Callable


class Beside:
    """Derive from it. What `run_beside` was given has to return soon once `_ended` is set."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def run_beside(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()
