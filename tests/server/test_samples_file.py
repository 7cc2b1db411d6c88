"""The overview's charts over a restart."""

import asyncio
import json
import os

import pytest

from edgestead.server.control.samples_file import FILE_BYTES_MAX, FILE_NAME, SamplesFile
from edgestead.web.samples import CHARTS, SAMPLE_SECONDS, Samples
from tests.web.conftest import Visitor


def made(folder, now_us=0, samples=None):
    return SamplesFile(samples or Samples(str, float), folder, lambda: now_us)


def with_points():
    clock, count = [0.0], [0]
    samples = Samples(lambda: f'edge_dns_queries_total{{process="dns-0"}} {count[0]}', lambda: clock[0])
    for _ in range(3):
        samples.take()
        clock[0], count[0] = clock[0] + SAMPLE_SECONDS, count[0] + 50
    return samples


def points(samples):
    return [value for _, value in samples.lines(CHARTS[0], "hour")[0].points]


def test_what_was_written_is_read_and_nobody_else_may(tmp_path):
    made(tmp_path, samples=with_points()).write()

    again = Samples(str, float)
    made(tmp_path, samples=again).read()

    assert points(again) == [5.0, 5.0]
    assert [one.name for one in tmp_path.iterdir()] == [FILE_NAME]
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


_TORN = [
    b"",
    b"{",
    b'{"form":1}',
    b"\0" * (FILE_BYTES_MAX + 1),
    b'{"lines":["\xff"]}',
    b'{"form":1,"at_us":-1' + b"0" * 400 + b',"lines":[],"rings":{}}',
]


@pytest.mark.parametrize("content", _TORN)
def test_a_file_that_is_torn_or_not_ours_is_ignored_in_words(tmp_path, caplog, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    samples = Samples(str, float)

    made(tmp_path, samples=samples).read()

    assert points(samples) == []
    assert "is ignored, the dashboard's charts begin anew: " in caplog.text


def test_no_file_is_nothing_to_say_and_one_that_cannot_be_written_is(tmp_path, caplog):
    made(tmp_path).read()
    assert caplog.text == ""

    made(tmp_path / "gone").write()

    assert "the dashboard's samples are not kept over a restart: " in caplog.text


def test_samples_are_kept_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr("edgestead.server.control.samples_file.KEEP_SECONDS", 0)

    async def script():
        file, wrote = made(tmp_path, samples=with_points()), asyncio.Event()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(file, "_write", lambda content: loop.call_soon_threadsafe(wrote.set))
        running = asyncio.create_task(file.run())
        await asyncio.wait_for(wrote.wait(), 300)
        running.cancel()

    asyncio.run(script())


def test_charts_go_on_after_a_restart_of_the_server(new_server):
    server = new_server().start()
    server.stop()
    file = server.data_dir / FILE_NAME
    kept = json.loads(file.read_bytes())
    sample = [7.5] * len(kept["lines"])
    file.write_text(json.dumps(kept | {"rings": {"hour": [[20, sample], [10, sample]], "day": []}}))

    server.start()
    visitor = Visitor(server)
    visitor.sign_in(server.ready["api_token"])

    shown = json.loads(visitor.get("/ui.json").text)["charts"][0]
    assert (shown["title"], shown["highest"]) == ("DNS queries", "7.5")
    assert os.stat(file).st_size < 2_000
