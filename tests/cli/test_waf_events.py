"""`edgecli waf events`: following, against a list of answers; what people read."""

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.cli.waf import events
from edgestead.edge.rules import acts
from edgestead.edge.tools.clearance import KINDS


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
    monkeypatch.setattr(events, "FOLLOW_SECONDS", 0)
    newest = [event(at) for at in sorted(times, reverse=True)][:shown]
    with pytest.raises(KeyboardInterrupt):
        events._follow(Server(times, late), "/", {}, newest, lambda one: one["id"])
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


# what people read


def decided(**about):
    return {
        **dict.fromkeys(("description", "reason", "query", "client", "method", "host", "path"), ""),
        **{"rule_id": None, "score": None, "threshold": None, "dropped": 0, "status": 403},
        **{"occurred_on": "now", "action": "block", "phase": "http_request_firewall_custom"},
        **about,
    }


RULE_ID = "5" * 32
ROWS = [  # of an event: what stands for the rule, and why
    ({"rule_id": RULE_ID, "reason": 'http.host eq "x"'}, RULE_ID, 'http.host eq "x"'),
    ({"rule_id": RULE_ID, "description": "No robots", "reason": "true"}, "No robots", "true"),
    ({"phase": "always_use_https", "reason": "the setting …"}, "always_use_https", "the setting …"),
    ({"description": "949110: …", "score": 30, "threshold": 25}, "949110: …", "score 30 of 25"),
]


@pytest.mark.parametrize(("about", "rule", "why"), ROWS)
def test_a_row_says_which_rule_and_why(about, rule, why):
    assert events._row(decided(**about))[-2:] == (rule, why)


def test_an_action_that_no_event_has_is_refused_with_those_there_are():
    done = CliRunner().invoke(cli, ["waf", "events", "--action", "foo"], prog_name="edgecli")
    assert done.exit_code == 2
    assert all(action in done.output for action in events.ACTIONS)


def test_every_action_of_an_event_can_be_asked_for():
    written = {"redirect", "refuse", "fail", "challenge_failed", "challenge_solved", "skip"}
    assert set(events.ACTIONS) == {*acts._MAKERS, *KINDS, *written}


def test_a_terminal_gets_a_sentence_where_there_are_no_events(capsys, monkeypatch):
    events._show([], as_json=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    events._show([], as_json=False)

    piped, shown = capsys.readouterr().out.splitlines()
    assert piped.split() == list(events._HEADS)
    assert shown == "No such events."
