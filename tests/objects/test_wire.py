"""A question to another process ends, whatever becomes of that process."""

import asyncio

import pytest

from edgestead.objects.runtime.wire import Answering, Asker, Lost

SECONDS_MAX = 180


async def ask_all(asker, count):
    """What became of so many questions at once: answers, or the class of each exception."""
    async with asyncio.timeout(SECONDS_MAX):
        ended = await asyncio.gather(*(asker.ask(b"%d" % n) for n in range(count)), return_exceptions=True)
    return [one if isinstance(one, bytes) else type(one) for one in ended]


def test_answers_belong_to_their_questions(tmp_path):
    async def main():
        async def answer(body):
            await asyncio.sleep(0.001 * (7 - int(body)))
            return b"to " + body

        loop, path = asyncio.get_running_loop(), str(tmp_path / "socket")
        server = await loop.create_unix_server(lambda: Answering(answer, set()), path)
        asker = Asker(path)
        found = await ask_all(asker, 7)
        asker.close()
        server.close()
        return found

    assert asyncio.run(main()) == [b"to %d" % n for n in range(7)]


def test_a_connection_that_is_lost_before_the_first_question_loses_it(tmp_path):
    """The process may end after it took the connection and before whoever waited for it goes on."""

    async def main():
        class Ending(asyncio.Protocol):
            def connection_made(self, transport):
                transport.abort()

        loop, path = asyncio.get_running_loop(), str(tmp_path / "socket")
        server = await loop.create_unix_server(Ending, path)
        asker = Asker(path)
        connected = asker._connect

        async def late():
            made = await connected()
            while not made.is_lost:  # noqa: ASYNC110
                await asyncio.sleep(0)
            return made

        asker._connect = late
        found = await ask_all(asker, 5)
        server.close()
        return found

    assert asyncio.run(main()) == [Lost] * 5


@pytest.mark.parametrize("error", [ValueError("no"), OSError("disk")], ids=repr)
def test_a_question_that_breaks_its_answerer_is_lost(tmp_path, caplog, error):
    async def main():
        async def answer(body):
            raise error

        loop, path = asyncio.get_running_loop(), str(tmp_path / "socket")
        server = await loop.create_unix_server(lambda: Answering(answer, set()), path)
        asker = Asker(path)
        found = await ask_all(asker, 3)
        server.close()
        return found

    assert asyncio.run(main()) == [Lost] * 3
    assert "could not be answered" in caplog.text
