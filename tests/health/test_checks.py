"""The table of checks: what is well, what is not, and what follows from it."""

from pathlib import Path

import pytest

from edgestead.health import checks
from edgestead.health.facts import (
    DAY_US,
    Behind,
    Certificate,
    EndingZone,
    Facts,
    FailedOrder,
    Group,
    HeldZone,
    LateZone,
    NodeCertificate,
    Past,
    Sink,
    TroubledCatalog,
)
from edgestead.health.rows import SUBJECTS_MAX, Board, levels

NOW_US = 1_800_000_000_000_000
GIB = 1 << 30


def certificate(days):
    return Certificate("www.example.com", "/tls/www.example.com.pem", NOW_US + int(days * DAY_US))


ONE_OF_TWO, NO_OBJECTS = Group("objects", ("objects-0",), 2, False), Group("objects", (), 0, False)
DNS = Group("DNS", ("dns-1", "dns-2", "dns-tcp"), 1, True)
EDGE, OBJECTS = Group("edge", ("edge-1",), 2, True), Group("objects", ("objects-0", "objects-1"), 2, False)

# Facts, and the one row that is not ok: its key, its state, a part of its words.
NOT_WELL = [
    ({"stuck": ("dns-0",)}, "supervisor", "fail", "dns-0 neither runs"),
    ({"control_away": True}, "control", "fail", "control does not answer"),
    ({"control_away": True, "reasons": (("control", "no"),)}, "control", "fail", "does not answer: no"),
    ({"groups": (Group("DNS", (), 1, True),)}, "processes/dns", "fail", "no DNS process answers"),
    ({"groups": (Group("objects", (), 2, False),)}, "processes/objects", "fail", "0 of 2 objects processes"),
    ({"groups": (ONE_OF_TWO,)}, "processes/objects", "warn", "1 of 2 objects processes"),
    ({"silent": ("edge-0",)}, "processes/edge-0", "fail", "edge-0 does not answer"),
    ({"silent": ("edge-0",), "groups": (EDGE,)}, "processes/edge-0", "warn", "edge-0 does not answer"),
    ({"silent": ("dns-tcp",), "groups": (EDGE,)}, "processes/dns-tcp", "fail", "dns-tcp does not answer"),
    ({"unstable": ("edge-0",)}, "processes/edge-0", "fail", "edge-0 ends and starts again and again"),
    ({"unstable": ("objects-0",), "groups": (OBJECTS,)}, "processes/objects-0", "warn", "again and again"),
    ({"behind": (Behind("dns-0", 7, 3.0),)}, "feed/dns-0", "warn", "7 changes behind"),
    ({"behind": (Behind("dns-0", 7, 11.0),)}, "feed/dns-0", "fail", "no progress for 11 s"),
    ({"nodes_away": (("ams-1", 5.0),)}, "feed/ams-1", "warn", "the machine ams-1 lacks the newest changes"),
    ({"disk_full": "the disk is full"}, "disk", "fail", "the disk is full"),
    ({"disk_free_bytes": GIB - 1, "disk_total_bytes": 100 * GIB}, "disk", "warn", "1023 MiB are free"),
    ({"disk_free_bytes": GIB // 20, "disk_total_bytes": GIB}, "disk", "warn", "51 MiB are free"),
    ({"objects_read_only": True}, "disk/objects", "fail", "no space is left"),
    ({"folder_lost": "it was removed"}, "store", "fail", "it was removed"),
    ({"store_faults": (("kv.db", "EIO"),)}, "store/kv.db", "fail", "kv.db cannot be written: EIO"),
    ({"cluster_clock_seconds": 2.5}, "clock/leader", "warn", "2 s ahead of that of the node that leads"),
    ({"cluster_clock_seconds": -3600.0}, "clock/leader", "warn", "3600 s behind that of"),
    ({"writes_lost": "35 are lost"}, "lost-writes", "fail", "35 are lost"),
    ({"pasts": (Past("objects-0", 96, 100),)}, "history/objects-0", "warn", "its oldest goes"),
    ({"pasts_damaged": ("objects-0",)}, "history/objects-0", "fail", "a part of the past of objects-0"),
    (
        {"node_certificate": NodeCertificate(NOW_US + 20 * DAY_US, "the disk is full")},
        "certificates/node",
        "warn",
        "and was not renewed: the disk is full",
    ),
    (
        {"node_certificate": NodeCertificate(NOW_US + 80 * DAY_US, "nobody is there", "Input/output error")},
        "certificates/node",
        "warn",
        "cannot be read (Input/output error), and was not renewed: nobody is there",
    ),
    (
        {"node_certificate": NodeCertificate(0, "", "gone")},
        "certificates/node",
        "fail",
        "cannot be read (gone)",
    ),
    ({"node_certificate": NodeCertificate(NOW_US)}, "certificates/node", "fail", "its certificate ended on"),
    ({"certificates": (certificate(20),)}, "certificates/www.example.com", "warn", "ends on"),
    ({"certificates": (certificate(0),)}, "certificates/www.example.com", "fail", "ended on"),
    ({"certificates": (Certificate("a", "/tls/a.pem", None),)}, "certificates/a", "fail", "can be read"),
    (
        {"orders_failed": (FailedOrder("a.example", "no TXT", False),)},
        "certificates/a.example (order)",
        "fail",
        "no TXT",
    ),
    (
        {"orders_failed": (FailedOrder("a.example", "no TXT", True),)},
        "certificates/a.example (order)",
        "warn",
        "new",
    ),
    (
        {"zones_late": (LateZone("a.example", "no answer", 0, False),)},
        *(
            "secondary-zones/a.example",
            "warn",
            "a.example was never transferred, and is answered SERVFAIL: no",
        ),
    ),
    (
        {"zones_late": (LateZone("a.example", "no answer", NOW_US - DAY_US, True),)},
        *("secondary-zones/a.example", "warn", "not refreshed since 2027-01-14 08:00 UTC: no answer"),
    ),
    (
        {"zones_late": (LateZone("a.example", "no answer", NOW_US - DAY_US, False),)},
        *("secondary-zones/a.example", "fail", "a.example expired, and is answered SERVFAIL: no answer"),
    ),
    (
        {"zones_ending": (EndingZone("a.example", NOW_US + DAY_US),)},
        *("secondary-zones/a.example (signatures)", "warn", "which its primary signs, ends at 2027-01-16"),
    ),
    (
        {"zones_ending": (EndingZone("a.example", NOW_US - DAY_US),)},
        *("secondary-zones/a.example (signatures)", "fail", "which its primary signs, ended at 2027-01-14"),
    ),
    (
        {"zones_held": (HeldZone("a.example", "no key"),)},
        *("restored-zones/a.example", "warn", "serial of the backup, so its secondaries may not"),
    ),
    (
        {"catalogs_troubled": (TroubledCatalog("cat.example", "it is broken", 2, "b.example: no"),)},
        *("catalogs/cat.example", "warn", "the catalog cat.example is not taken: it is broken"),
    ),
    (
        {"catalogs_troubled": (TroubledCatalog("cat.example", "", 2, "b.example: no"),)},
        *("catalogs/cat.example", "warn", "2 zones of the catalog cat.example cannot be served: b.example"),
    ),
    ({"sign_in_trouble": "it answers 500"}, "sign-in", "warn", "the OpenID provider fails: it answers 500"),
    ({"certificates_fault": "gone"}, "certificates", "fail", "gone"),
    ({"clock_back_seconds": 90.0}, "clock", "warn", "set back by 90 s"),
    ({"clock_behind_seconds": 3600.0}, "clock", "fail", "3600 s behind the newest file"),
    ({"cluster_cut_off": True}, "cluster", "fail", "its API answers nothing"),
    ({"cluster_cut_off": True, "cluster_reads_go_on": True}, "cluster", "warn", "reads may be old"),
    ({"cluster_leaderless": True}, "cluster", "warn", "writes wait"),
    ({"cluster_has_one_copy": True}, "cluster", "warn", "no synchronous standby"),
    ({"cluster_misfits": 3}, "cluster/copy", "fail", "did not fit this node's copy 3 times"),
    ({"rules_missing": True}, "rules", "fail", "managed rules are not ready"),
    ({"managed_ruleset": False}, "rules/owasp", "warn", "no managed OWASP ruleset"),
    ({"libinjection_missing": "apt"}, "detectors/libinjection", "fail", "libinjection is missing"),
    ({"rules_slow": True}, "detectors/hyperscan", "warn", "Hyperscan"),
    ({"targets_unknown": 1}, "targets", "warn", "never resolved"),
    ({"quarantined": 2}, "quarantine", "fail", "2 stateful objects are in quarantine"),
    ({"classes_apart": 1}, "apart", "warn", "1 class has a process apart"),
    ({"refused_credentials": checks.REFUSED_WARN}, "credentials", "warn", "300 unknown credentials"),
    ({"backup_error": "no space", "backup_tried_us": 2}, "backups", "fail", "no backup has succeeded yet"),
    ({"backup_hours_max": 24}, "backups", "warn", "no backup of the last 24 hours"),
    (
        {"backup_hours_max": 24, "backup_made_us": NOW_US - DAY_US - 1},
        "backups",
        "warn",
        "2027-01-14 07:59",
    ),
    ({"sinks_failing": (Sink("ops", "refused", 1),)}, "alerts/ops", "fail", "do not reach ops: refused"),
]
WELL = [
    {"groups": (Group("DNS", ("dns-0",), 1, True), Group("edge", (), 0, True), NO_OBJECTS)},
    {"behind": (Behind("dns-0", 7, 1.9), Behind("edge-0", 0, 60.0))},
    {"nodes_away": (("ams-1", 4.9),)},
    {"disk_free_bytes": GIB, "disk_total_bytes": 100 * GIB},
    {"pasts": (Past("objects-0", 94, 100), Past("objects-1", 1 << 40, 0))},
    {"certificates": (certificate(22),)},
    {"clock_behind_seconds": 59.0},
    {"refused_credentials": checks.REFUSED_WARN - 1},
    {"cluster_misfits": 1},
    {"backup_tried_us": 1, "backup_made_us": 1},
    {"backup_hours_max": 24, "backup_made_us": NOW_US - DAY_US},
    {
        "managed_ruleset": False,
        "libinjection_missing": "apt",
        "rules_slow": True,
        "reasons": (("control", "x"),),
    },
]


def rows(**facts):
    return Board(lambda: 5).rows(checks.examine(Facts(now_us=NOW_US, **facts)))


@pytest.mark.parametrize(("facts", "key", "state", "words"), NOT_WELL)
def test_what_is_not_well_is_one_row_with_the_next_step(facts, key, state, words):
    (row,) = [row for row in rows(**facts) if row.state != "ok"]

    assert (row.key, row.state) == (key, state)
    assert words in row.message
    assert row.next_step.endswith((".", ")", "?", "apt"))


@pytest.mark.parametrize("facts", WELL)
def test_what_is_well_is_a_row_of_each_check(facts):
    found = rows(**facts)

    assert [row.check for row in found if row.subject != "owasp"] == [
        name for name in checks.NAMES if name != "rules" or facts.get("managed_ruleset", True)
    ]
    assert {row.state for row in found if row.subject != "owasp"} == {"ok"}


def test_every_check_is_in_the_table_of_cases():
    assert {key.partition("/")[0] for _, key, _, _ in NOT_WELL} == set(checks.NAMES)


def test_only_what_makes_this_the_wrong_server_makes_it_unready():
    expired = rows(certificates=(certificate(-1),), backup_error="x", quarantined=1, disk_free_bytes=1)
    assert checks.unready(expired) == []

    full = rows(disk_full="the disk is full", certificates=(certificate(-1),))
    assert [row.message for row in checks.unready(full)] == ["the disk is full"]


@pytest.mark.parametrize("what", ["silent", "unstable"])
@pytest.mark.parametrize("name", ["dns-0", "edge-0", "objects-0"])
def test_a_process_that_does_not_answer_makes_it_unready_if_no_other_does_the_same(what, name):
    groups = (DNS, EDGE, OBJECTS)
    assert checks.unready(rows(groups=groups, **{what: (name,)})) == []

    kind = name.partition("-")[0]
    alone = [g._replace(live=tuple(one for one in g.live if not one.startswith(kind))) for g in groups]
    assert checks.unready(rows(groups=tuple(alone), **{what: (name,)})) != []


def test_a_process_that_serves_no_client_makes_nothing_unready():
    assert checks.unready(rows(groups=(DNS, EDGE), unstable=("control", "log", "alerts"))) == []
    assert checks.unready(rows(groups=(DNS._replace(live=("dns-0",)),), silent=("dns-tcp",))) != []


@pytest.mark.parametrize(("facts", "key", "state", "words"), NOT_WELL)
def test_only_a_process_that_nobody_starts_again_withholds_the_watchdogs_ping(facts, key, state, words):
    assert bool(checks.withheld(Facts(now_us=NOW_US, **facts))) is (key == "supervisor")


def test_more_subjects_than_a_list_takes_are_counted():
    many = tuple(Certificate(f"{n}.example.com", "x", None) for n in range(SUBJECTS_MAX + 5))

    found = [row for row in rows(certificates=many) if row.check == "certificates"]

    assert len(found) == SUBJECTS_MAX + 1
    assert found[-1].message == "5 more are not well"


def test_a_state_has_a_beginning_until_it_changes():
    now = iter(range(10))
    board = Board(lambda: next(now))

    def since(**facts):
        found = {row.key: row for row in board.rows(checks.examine(Facts(**facts)))}
        return {key: row.since_us for key, row in found.items() if key.startswith(("feed", "disk"))}

    behind = {"behind": (Behind("dns-0", 7, 3.0),)}
    assert since() == {"feed": 0, "disk": 0}
    assert since(**behind) == {"feed/dns-0": 1, "disk": 0}
    assert since(**behind) == {"feed/dns-0": 1, "disk": 0}
    assert since(behind=(Behind("dns-0", 7, 30.0),)) == {"feed/dns-0": 3, "disk": 0}
    assert since() == {"feed": 4, "disk": 0}


def test_a_checks_level_is_that_of_its_worst_row():
    found = rows(certificates=(certificate(20), certificate(-1)._replace(name="b"), certificate(30)))

    assert levels(found, checks.NAMES)["certificates"] == 2
    assert sum(levels(found, checks.NAMES).values()) == 2


def test_pages_that_rows_send_to_are_there():
    operate = (Path(__file__).parents[2] / "docs" / "how-to" / "operate.md").read_text()

    for heading in ("When the disk is full", "When the server says that writes are lost"):
        assert f"## {heading}\n" in operate
