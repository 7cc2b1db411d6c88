"""No list weighs more than a page may, however much others wrote into it."""

import re

import pytest

from edgestead.usecases.limits import EMAIL_CHARACTERS_MAX, TOKEN_NAME_CHARACTERS_MAX, TOKENS_PER_USER_MAX
from edgestead.web.pages.phases import CUSTOM
from tests.web.local import LocalSite
from tests.web.local import LocalVisitor as Visitor
from tests.web.test_rows import PAGE_BYTES_MAX

ROWS = 60  # more than any page has
ZONE = "a-zone-whose-name-is-longer-than-most-are.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = LocalSite(tmp_path_factory.mktemp("weight"))
    made.zone_id = made.make_zone(ZONE)
    yield made
    made.close()


@pytest.fixture(scope="module")
def visitor(server):
    made = Visitor(server)
    assert made.sign_in(server.ready["api_token"]).status == 303
    return made


@pytest.fixture(scope="module")
def weighed(visitor):
    files = sum(len(visitor.get(f"/ui/static/{name}").text.encode()) for name in ("page.js", "style.css"))

    def weigh(path):
        page = visitor.get(path)
        assert page.status == 200, page.text
        return page, len(page.text.encode()) + files

    return weigh


def send(server, method, path, body):
    answer = server.api.call(method, path, body)
    assert answer.status == 200, answer.body


def test_records_and_their_history(server, weighed):
    content = " ".join('"' + letter * 250 + '"' for letter in "abcdefgh")
    path = f"/zones/{server.zone_id}/dns_records"
    for number in range(ROWS):
        record = {"type": "TXT", "name": f"n{number}", "content": content, "comment": "c" * 100}
        send(server, "POST", path, record)
    for one in server.api.get(f"{path}?per_page={ROWS}").result[:ROWS]:
        send(server, "PATCH", f"{path}/{one['id']}", {"comment": "d" * 100})

    for page in ("", "/history"):
        found, size = weighed(f"/ui/zones/{ZONE}{page}")
        assert size < PAGE_BYTES_MAX, page
        assert "aaa…" in found.text
    newest = server.api.get(f"/zones/{server.zone_id}/history?per_page=5").result[0]["sequence"]
    found, _ = weighed(f"/ui/zones/{ZONE}/history/{newest}/undo")
    assert "h" * 250 in found.text, "before it is done all of it is shown"
    _, size = weighed(f"/ui/zones/{ZONE}/history/{newest - ROWS - ROWS // 2}/restore")
    assert size < PAGE_BYTES_MAX


def test_rulesets_of_the_account_are_on_pages_and_each_is_on_one(server, visitor, weighed):
    for number in range(ROWS):
        rule = {"action": "log", "expression": 'http.host eq "a"', "description": "d" * 200}
        rules = [rule] * (number % 3)
        body = {"name": f"house {number:02}", "kind": "custom", "phase": CUSTOM, "rules": rules}
        send(server, "POST", f"{server.account}/rulesets", body)

    first, size = weighed("/ui/rules")
    assert size < PAGE_BYTES_MAX
    pages = int(re.search(r"Page 1 of (\d+)", first.words)[1])
    listed = [
        re.findall(r"house \d\d", visitor.get(f"/ui/rules?page={one}").words) for one in range(1, pages + 1)
    ]
    assert {name for names in listed for name in names} == {f"house {number:02}" for number in range(ROWS)}


def test_a_request_that_is_tried_at_many_rules(server, visitor, weighed):
    expressions = ["true" if number == 150 else f'http.host eq "{"a" * 300}"' for number in range(200)]
    rules = [{"action": "log", "expression": one, "description": "d" * 200} for one in expressions]
    send(server, "PUT", f"/zones/{server.zone_id}/rulesets/phases/{CUSTOM}/entrypoint", {"rules": rules})
    empty, size = weighed(f"/ui/zones/{ZONE}/rules/try")
    form = {"url": f"http://{ZONE}/", "method": "GET", "client": "192.0.2.1"}

    tried = visitor.post(f"/ui/zones/{ZONE}/rules/try", **form)

    assert size + len(tried.text) - len(empty.text) < PAGE_BYTES_MAX
    assert "1 of 200 rules matches" in tried.words
    assert "<td>151</td><td><span" in tried.text, "the one that matches is shown"
    assert "140 more rules, which do not match" in tried.words


def test_a_file_that_would_add_many_records(visitor, weighed):
    path = f"/ui/zones/{ZONE}/import"
    empty, size = weighed(path)
    file = "".join(f'i{number} 300 IN TXT "{"x" * 200}"\n' for number in range(300))

    looked = visitor.post(path, what="look", file=file)

    assert size + len(looked.text) - len(empty.text) - len(file) - 8 * 300 < PAGE_BYTES_MAX
    assert "and 200 more" in looked.words


def test_keys_are_fewer_where_they_are_long(server, visitor, weighed):
    spaces = f"{server.account}/storage/kv/namespaces"
    names = {"short": "k", "long": "ü" * 250}
    for title, name in names.items():
        space = server.api.post(spaces, {"title": title}).result["id"]
        pairs = [
            {"key": f"{number:03}{name}", "value": "v", "metadata": {"m": "<" * 900}}
            for number in range(ROWS)
        ]
        send(server, "PUT", f"{spaces}/{space}/bulk", pairs)
        found, size = weighed(f"/ui/values/{space}")
        assert size < PAGE_BYTES_MAX, title
        seen = 0
        while True:
            seen += found.text.count("</td></tr>")
            after = [one for one in found.text.split('href="') if one.startswith("?prefix=&amp;cursor=")]
            if not after:
                break
            found = visitor.get(f"/ui/values/{space}" + after[0].partition('"')[0].replace("&amp;", "&"))
        assert seen == ROWS, "every key is on one page"


def test_namespaces(server, weighed):
    for number in range(ROWS):
        send(server, "POST", f"{server.account}/storage/kv/namespaces", {"title": f"{number}" + "n" * 500})

    assert weighed("/ui/values")[1] < PAGE_BYTES_MAX


def test_tokens(server, weighed):
    groups = [{"id": one["id"]} for one in server.api.get("/user/tokens/permission_groups").result]
    account = server.account.rpartition("/")[2]
    policy = {"effect": "allow", "permission_groups": groups}
    resources = [
        {f"com.cloudflare.api.account{one}": "*"}
        for one in (f".{account}", ".zone.*", f".zone.{server.zone_id}", ".*")
    ]
    policies = [policy | {"resources": one} for one in resources]
    held = len(server.api.get("/user/tokens?per_page=50").result)
    for number in range(TOKENS_PER_USER_MAX - held):
        name = f"{number}".ljust(TOKEN_NAME_CHARACTERS_MAX, "n")
        send(server, "POST", "/user/tokens", {"name": name, "policies": policies})

    found, size = weighed("/ui/tokens")

    assert size < PAGE_BYTES_MAX
    assert "and 1 more" in found.words


def test_members_and_the_audit_log(server, weighed):
    role = server.api.get(f"{server.account}/roles").result[0]["id"]
    for number in range(ROWS):
        email = f"{number}".ljust(50, "m") + "@" + "d" * (EMAIL_CHARACTERS_MAX - 59) + ".example"
        send(server, "POST", f"{server.account}/members", {"email": email, "roles": [role]})

    for path in ("/ui/members", "/ui/audit", "/ui/audit?since=2020-01-01"):
        assert weighed(path)[1] < PAGE_BYTES_MAX, path
