"""Requests of programs that are not installed here get the answers that those read, in both profiles."""

import pytest

from edgestead.model.call import Profile
from tests.clients.replays import NEVER, REPLAYS
from tests.rest.conftest import AT_NEWEST
from tests.support.api import CREDENTIALS

ABSENT = object()


@pytest.fixture(params=list(Profile))
def profile(request):
    return request.param


@AT_NEWEST
@pytest.mark.parametrize("program", REPLAYS)
def test_a_program_gets_what_it_reads(api, zone_id, profile, program):
    replay = REPLAYS[program]
    works = program not in NEVER and (replay.spec is None or profile is Profile.CLIENTS)

    stopped = None
    known = {"zone": zone_id, "name": "example.com", "account": CREDENTIALS.account_id}
    known["said_name"] = f"_acme-challenge.{known['name']}"
    for ask in replay.asks:
        stopped = asked(api, ask, known)
        if stopped is not None:
            break

    assert (stopped is None) == works, stopped
    if not works and replay.spec != -1:
        assert replay.spec in stopped.codes


def asked(api, ask, known):
    """None, or the answer with which the program cannot go on."""
    body = filled(ask.body, known)
    answer = api.call(ask.method, filled(ask.path, known), body)
    if answer.status != 200:
        return answer
    for path, wanted in ask.wanted.items():
        found = member(answer.json, path)
        if found is ABSENT or (wanted is not None and found != filled(wanted, known)):
            return answer
    known |= {name: str(member(answer.json, path)) for name, path in ask.keep.items()}
    return None


def filled(value, known):
    if isinstance(value, str):
        for name, text in known.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, dict):
        return {name: filled(one, known) for name, one in value.items()}
    return value


def member(answer, path):
    """What stands at a path of the result, or of the answer where it begins with a slash."""
    found = answer if path.startswith("/") else answer["result"]
    for part in path.strip("/").split("/") if path.strip("/") else ():
        if isinstance(found, list):
            if int(part) >= len(found):
                return ABSENT
            found = found[int(part)]
        elif part not in found:
            return ABSENT
        else:
            found = found[part]
    return found
