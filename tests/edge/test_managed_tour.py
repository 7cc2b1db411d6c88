"""From a page to a tuned WAF, with this machine's rule set: the edge does what `edgecli waf` predicts."""

import json

import pytest
from click.testing import CliRunner

from edgestead.cli.main import cli
from edgestead.crs import RulesMissing, load
from tests.edge.conftest import Site
from tests.edge.talk import say
from tests.support.patterns import share_patterns

REQUESTS = {
    "injection": (
        "POST /search HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n"
        "Content-Length: 45\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n"
        "q=1' UNION SELECT password FROM users WHERE 1"
    ),
    "script": "GET /?q=%3Cscript%3Ealert(1)%3C/script%3E HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n",
    "harmless": "GET /shop?q=red+shoes HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nUser-Agent: M/5\r\n\r\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    try:
        load(None)
    except RulesMissing:
        pytest.skip("modsecurity-crs is not installed")
    made = Site(tmp_path_factory.mktemp("tour"))
    share_patterns(made.server.data_dir)
    yield made
    made.close()


@pytest.fixture
def edgecli(site, tmp_path, monkeypatch):
    """Run edgecli against the server; what it prints on stdout."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "edgestead.waf.plan.scan.available", lambda: False
    )  # a handful of requests: nothing to compile

    def run(*words, text=None):
        ready = site.server.ready
        names = {"EDGE_API_BASE": "api_base", "EDGE_TOKEN": "api_token", "EDGE_ACCOUNT_ID": "account_id"}
        environment = {name: ready[key] for name, key in names.items()}
        done = CliRunner().invoke(cli, words, prog_name="edgecli", env=environment, input=text)
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def test_the_edge_does_what_explain_predicts_at_each_level_and_threshold(site, edgecli):
    host, _ = site.origin()
    sent = {name: text.format(host=host) for name, text in REQUESTS.items()}
    told = {
        name: json.loads(edgecli("waf", "explain", "-", "--json", text=text)) for name, text in sent.items()
    }
    assert told["injection"]["levels"][1]["score"] >= 40 > told["injection"]["levels"][0]["score"]

    edgecli("waf", "level", "1", "--deploy")
    site.server.wait_until(lambda: site.get(host).status == 200, 180)
    for level in (1, 2, 4):
        edgecli("waf", "level", str(level))
        for threshold in (5, 25, 40, 60):
            edgecli("waf", "threshold", str(threshold))
            for name, text in sent.items():
                score = told[name]["levels"][level - 1]["score"]
                answer = say(site.http, text.encode())
                assert (name, level, threshold, answer.status) == (
                    *(name, level, threshold),
                    403 if score >= threshold else 200,
                )


def test_what_stops_good_requests_becomes_an_exception_and_stops_attacks_elsewhere(site, edgecli):
    host, _ = site.origin()
    edgecli("waf", "level", "1", "--deploy")
    edgecli("waf", "threshold", "5")
    script = "q=%3Cscript%3Etrack()%3C/script%3E"
    site.server.wait_until(lambda: site.get(host, f"/editor?{script}").status == 403, 180)
    good = json.dumps({"method": "GET", "path": "/editor", "query": script, "host": host}) + "\n"

    assert "would take all of it" in edgecli("waf", "suggest", "-", "--dry-run", text=good)
    assert site.get(host, f"/editor?{script}").status == 403
    edgecli("waf", "suggest", "-", "--apply", text=good)

    accept = ("Accept: */*", "User-Agent: Mozilla/5.0")
    assert site.get(host, f"/editor?{script}", *accept).status == 200
    assert site.get(host, f"/other?{script}", *accept).status == 403
    assert site.get(host, "/editor?q=1'+union+select+password+from+users", *accept).status == 403
