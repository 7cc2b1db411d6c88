"""`edgecli waf events --follow`, against a list of answers."""

import pytest

from edgestead.cli import waf_events


class Server:
    """Answers the events since a time, as the API does; `late` come with the second question."""

    def __init__(self, times, late):
        self.times, self.late, self.questions = list(times), late, 0

    def call(self, method, path, query):
        self.questions += 1
        if self.questions == 2:
            self.times += self.late
        if self.questions > 3:
            raise KeyboardInterrupt
        return {"result": [event(at) for at in sorted(self.times)], "result_info": {}}


def event(at):
    return {"id": f"{at * 1_000_000:016x}" + "0" * 16}


def followed(times, shown, late, monkeypatch, capsys):
    monkeypatch.setattr(waf_events, "FOLLOW_SECONDS", 0)
    newest = [event(at) for at in sorted(times, reverse=True)][:shown]
    with pytest.raises(KeyboardInterrupt):
        waf_events._follow(Server(times, late), "/", {}, newest, lambda one: one["id"])
    return [int(line[:16], 16) // 1_000_000 for line in capsys.readouterr().out.split()]


TIMES = [1_000, 1_001, 1_003]
CASES = [  # how many are shown first, what comes late, what is printed then
    (3, [1_004], [1_004]),
    (3, [1_002], [1_002]),  # another process wrote it late
    (1, [1_004], [1_004]),  # what the limit cut off does not come back
]


@pytest.mark.parametrize(("shown", "late", "printed"), CASES)
def test_what_is_new_is_printed_once(shown, late, printed, monkeypatch, capsys):
    assert followed(TIMES, shown, late, monkeypatch, capsys) == printed
