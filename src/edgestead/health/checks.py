"""The table of checks: what the server knows of its own health, each with the next step.

Owns  what is examined, from which figure on it is a warning or a failure, and the wording.
Not   gathering facts; where rows are shown.

A check yields what is not well; without that its row is `ok` with the words of `fine`. `warn`: it works, and
an operator should look. `fail`: something does not work. Only what makes this server the wrong place for a
request makes /health/ready fail (`unready`): one expired certificate must not take every other site away.
`withholds`: the unit's watchdog gets no ping, so that systemd starts the whole server again. That ends what
still serves, so it is only for what nothing else repairs.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from edgestead.health.facts import DAY_US, SECOND_US, Facts
from edgestead.health.rows import Finding, Row, State, bounded
from edgestead.model.counters import HEALTH_CHECKS

FEED_WARN_SECONDS = 2.0  # without progress; a beat is half a second
NODE_WARN_SECONDS = 5.0  # as long as a lease of a machine without control
FEED_FAIL_SECONDS = 10.0  # as long as a write waits for a process (`feed.publisher`)
FREE_BYTES_WARN = 1 << 30
FREE_PART_WARN = 10  # or a tenth of a small disk
HISTORY_PART_WARN = 0.95  # of objects-history-mib; beyond all of it the oldest goes
CERTIFICATE_WARN_DAYS = 21  # ACME clients renew with 30 days left: this one did not
CLOCK_AHEAD_SECONDS = 60.0  # of files before a clock: more than machines disagree that use NTP
CLOCKS_APART_SECONDS = 2.0  # of two nodes of a cluster; a busy machine may keep an entry for one
MISFITS_WARN = 2  # the second copy in a row: one that differs is loaded again, and that is all
REFUSED_WARN = 300  # in five minutes: a program with a lost token tries once a second
NODE_SUBJECT = "node"  # as no host is called
HOUR_US = 3_600 * SECOND_US
_ROLES = frozenset({"dns", "dns-tcp", "edge", "objects"})  # of processes that serve clients from the feed

_LOG = "The server's log says why (`journalctl -u edgestead`)."


class Check(NamedTuple):
    """`covers` names the subjects of its rows; empty when it has one row."""

    name: str
    covers: str
    fine: str
    find: Callable[[Facts], Iterable[Finding]]
    unready: bool = False
    withholds: bool = False


def _supervisor(facts: Facts) -> Iterator[Finding]:
    if facts.stuck:
        yield Finding(
            "fail",
            f"{', '.join(facts.stuck)} neither runs nor waits for a start",
            "systemd starts the server again when its watchdog is set; otherwise restart it.",
        )


def _control(facts: Facts) -> Iterator[Finding]:
    if facts.control_away:
        reason = dict(facts.reasons).get("control", "")
        yield Finding("fail", "control does not answer" + (f": {reason}" if reason else ""), _LOG)


def _processes(facts: Facts) -> Iterator[Finding]:
    reasons = dict(facts.reasons)
    for group in facts.groups:
        if group.any_serves and group.wanted and not group.live:
            yield Finding("fail", f"no {group.name} process answers", _LOG, group.name.lower())
        elif not group.any_serves and len(group.live) < group.wanted:
            words = f"{len(group.live)} of {group.wanted} {group.name} processes answer"
            yield Finding("warn" if group.live else "fail", words, _LOG, group.name.lower())
    for name in facts.unstable:
        reason = f": {reasons[name]}" if reasons.get(name) else ""
        words = f"{name} ends and starts again and again{reason}"
        yield Finding(_level_without(name, facts), words, _LOG, name)
    for name in facts.silent:
        if name not in facts.unstable:
            step = "It is ended and started again by itself; the log says where it stood."
            yield Finding(_level_without(name, facts), f"{name} does not answer", step, name)


def _level_without(name: str, facts: Facts) -> State:
    """Of a process that does not answer now and then: does another one do what clients need it for?"""
    serving = {_role_of(one) for group in facts.groups for one in group.live}
    return "fail" if _role_of(name) in _ROLES - serving else "warn"


def _role_of(process: str) -> str:
    """Workers that do the same have a number behind their name."""
    return process.rstrip("0123456789").rstrip("-")


def _feed(facts: Facts) -> Iterator[Finding]:
    for name, changes, seconds in facts.behind:
        if changes and seconds >= FEED_WARN_SECONDS:
            yield Finding(
                "fail" if seconds >= FEED_FAIL_SECONDS else "warn",
                f"{name} is {changes} changes behind, and made no progress for {seconds:.0f} s",
                "It is ended and loads everything again by itself. Does the machine have enough processors?",
                name,
            )
    for name, seconds in facts.nodes_away:
        if seconds >= NODE_WARN_SECONDS:
            step = (
                "Is it up, and does it reach a control node? What is gone for good: `edgecli cluster remove`."
            )
            yield Finding("warn", f"the machine {name} lacks the newest changes", step, name)


def _disk(facts: Facts) -> Iterator[Finding]:
    step = (
        "Delete what is not needed, or make the disk larger (docs/how-to/operate.md, When the disk is full)."
    )
    if facts.disk_full:
        yield Finding("fail", facts.disk_full, step)
    elif facts.disk_free_bytes < min(FREE_BYTES_WARN, facts.disk_total_bytes // FREE_PART_WARN):
        yield Finding("warn", f"{facts.disk_free_bytes >> 20} MiB are free where the data is", step)
    if facts.objects_read_only:
        yield Finding("fail", "objects cannot be written: no space is left", step, "objects")


def _store(facts: Facts) -> Iterator[Finding]:
    if facts.folder_lost:
        yield Finding(
            "fail", facts.folder_lost, "Bring the folder back, or restore a backup; then start again."
        )
    for name, trouble in facts.store_faults:
        yield Finding(
            "fail",
            f"{name} cannot be written: {trouble}",
            "A round each second tries again. Look at the disk (`dmesg`), and have a backup ready.",
            name,
        )


def _cluster(facts: Facts) -> Iterator[Finding]:
    if facts.cluster_cut_off:
        step = (
            "Is PostgreSQL up, and does this machine reach it? It goes on by itself; other nodes may answer."
        )
        if facts.cluster_reads_go_on:
            yield Finding("warn", "the cluster's database is silent: reads may be old, writes wait", step)
        else:
            yield Finding("fail", "the node's lease in the cluster is over: its API answers nothing", step)
    elif facts.cluster_leaderless:
        step = (
            "Another node takes the office within seconds. If not: `edgecli cluster status`, and PostgreSQL."
        )
        yield Finding("warn", "no control node leads the cluster: writes wait", step)
    if facts.cluster_misfits >= MISFITS_WARN:
        step = (
            "It tries again, more rarely each time, until the leader has stored a newer base: a day at most."
            " Use other nodes, and report it with this node's log."
        )
        yield Finding(
            "fail",
            f"the cluster's log did not fit this node's copy {facts.cluster_misfits} times in a row",
            step,
            "copy",
        )
    if facts.cluster_has_one_copy:
        step = "Set synchronous_standby_names in PostgreSQL, with a standby that follows it."
        yield Finding(
            "warn", "the cluster's database has no synchronous standby: one copy of each write", step
        )


def _lost_writes(facts: Facts) -> Iterator[Finding]:
    if facts.writes_lost:
        step = "operate.md, When the server says that writes are lost, has the way on."
        yield Finding("fail", facts.writes_lost, step)


def _history(facts: Facts) -> Iterator[Finding]:
    for process in facts.pasts_damaged:
        yield Finding(
            "fail",
            f"a part of the past of {process} is damaged: `restore` cannot go back to it",
            "`edgecli object verify` names the objects. Look at the disk (`dmesg`); a backup has their past.",
            process,
        )
    for process, size, size_max in facts.pasts:
        if size_max and size >= size_max * HISTORY_PART_WARN and process not in facts.pasts_damaged:
            yield Finding(
                "warn",
                f"the past of {process} takes {size >> 20} of {size_max >> 20} MiB: its oldest goes",
                "Raise objects-history-mib, or keep fewer moments (objects-thin-seconds).",
                process,
            )


def _certificates(facts: Facts) -> Iterator[Finding]:
    if facts.certificates_fault:
        step = "The service needs to read tls-dir and the files in it."
        yield Finding("fail", facts.certificates_fault, step)
    for name, path, ends_us in facts.certificates:
        if ends_us is None:
            words = f"{path} holds no certificate that can be read"
            yield Finding("fail", words, "Put a new one there.", name)
            continue
        day = datetime.fromtimestamp(ends_us / SECOND_US, UTC).date().isoformat()
        if ends_us <= facts.now_us:
            words = f"the certificate {path} ended on {day}"
            yield Finding("fail", words, "Put a new one in its place; no restart is needed.", name)
        elif ends_us - facts.now_us < CERTIFICATE_WARN_DAYS * DAY_US:
            step = "Why was it not renewed? The edge uses a new one without a restart."
            yield Finding("warn", f"the certificate {path} ends on {day}", step, name)
    for zone, error, served in facts.orders_failed:
        words = f"no {'new ' if served else ''}certificate for {zone}: {error}"
        step = "It is ordered again by itself; `edgecli certificate renew` does so at once."
        yield Finding("warn" if served else "fail", words, step, f"{zone} (order)")
    yield from _node_certificate(facts)


def _node_certificate(facts: Facts) -> Iterator[Finding]:
    one = facts.node_certificate
    if one is None or (not one.unread and one.ends_us - facts.now_us >= CERTIFICATE_WARN_DAYS * DAY_US):
        return
    because = f", and was not renewed: {one.problem}" if one.problem else ""
    day = datetime.fromtimestamp(one.ends_us / SECOND_US, UTC).date().isoformat()
    step = "Mend what is said here, or in the log; it is renewed by itself within the hour, or at a restart."
    if one.unread:
        words = f"the file of this node's certificate cannot be read ({one.unread}){because}"
        yield Finding("fail" if one.ends_us <= facts.now_us else "warn", words, step, NODE_SUBJECT)
    elif one.ends_us <= facts.now_us:
        words = f"other nodes accept this one no more: its certificate ended on {day}{because}"
        yield Finding("fail", words, step, NODE_SUBJECT)
    else:
        words = f"this node's certificate, by which others know it, ends on {day}{because}"
        yield Finding("warn", words, step, NODE_SUBJECT)


def _secondary_zones(facts: Facts) -> Iterator[Finding]:
    for zone, problem, checked_us, served in facts.zones_late:
        because = f": {problem}" if problem else ""
        step = f"Does its primary run, and allow transfers? `edgecli dns secondary show {zone}` says more."
        if not checked_us:
            words = f"{zone} was never transferred, and is answered SERVFAIL{because}"
            yield Finding("warn", words, step, zone)
        elif served:
            words = f"{zone} was not refreshed since {_minute(checked_us)}{because}"
            yield Finding("warn", words, step, zone)
        else:
            words = f"{zone} expired, and is answered SERVFAIL{because}"
            yield Finding("fail", words, step, zone)
    yield from _ending_zones(facts)


def _ending_zones(facts: Facts) -> Iterator[Finding]:
    step = "Does its primary sign it, and is it transferred? `edgecli dns secondary show {zone}` says more."
    for zone, ends_us in facts.zones_ending:
        if ends_us <= facts.now_us:
            words = f"a signature of {zone}, which its primary signs, ended at {_minute(ends_us)}"
            yield Finding("fail", words, step.format(zone=zone), f"{zone} (signatures)")
        else:
            words = f"a signature of {zone}, which its primary signs, ends at {_minute(ends_us)}"
            yield Finding("warn", words, step.format(zone=zone), f"{zone} (signatures)")


def _restored_zones(facts: Facts) -> Iterator[Finding]:
    for zone, problem in facts.zones_held:
        words = f"{zone} has the serial of the backup, so its secondaries may not follow it: {problem}"
        step = "It is tried again each hour; mend what the message says. Its own answers are as they were."
        yield Finding("warn", words, step, zone)


def _catalogs(facts: Facts) -> Iterator[Finding]:
    step = "`edgecli dns catalog members {name}` says more; its zones stay as they were."
    for name, problem, refused, example in facts.catalogs_troubled:
        if problem:
            words = f"the catalog {name} is not taken: {problem}"
            yield Finding("warn", words, step.format(name=name), name)
        elif refused:
            zones = "a zone" if refused == 1 else f"{refused} zones"
            words = f"{zones} of the catalog {name} cannot be served: {example}"
            yield Finding("warn", words, step.format(name=name), name)


def _clock(facts: Facts) -> Iterator[Finding]:
    step = "Run one time service (systemd-timesyncd, chrony); tokens, certificates and alarms depend on it."
    if facts.clock_behind_seconds >= CLOCK_AHEAD_SECONDS:
        words = f"the clock is {facts.clock_behind_seconds:.0f} s behind the newest file of the data folder"
        yield Finding("fail", words, step)
    elif facts.clock_back_seconds:
        words = f"the clock was set back by {facts.clock_back_seconds:.0f} s within the last hour"
        yield Finding("warn", words, step)
    if abs(facts.cluster_clock_seconds) >= CLOCKS_APART_SECONDS:
        way = "ahead of" if facts.cluster_clock_seconds > 0 else "behind"
        words = f"the clock is {abs(facts.cluster_clock_seconds):.0f} s {way} that of the node that leads"
        yield Finding("warn", words, step, "leader")


def _rules(facts: Facts) -> Iterator[Finding]:
    if facts.rules_missing:
        step = "Requests of zones that use them get 503 meanwhile. The log says what they wait for."
        yield Finding("fail", "managed rules are not ready at the edge", step)
    if not facts.managed_ruleset:
        step = "Install the package modsecurity-crs, or give a release with --crs PATH; then start again."
        yield Finding("warn", "there is no managed OWASP ruleset", step, "owasp")


def _detectors(facts: Facts) -> Iterator[Finding]:
    if facts.managed_ruleset and facts.libinjection_missing:
        yield Finding(
            "fail",
            "the managed ruleset detects no SQL injection and no script injection: libinjection is missing",
            facts.libinjection_missing,
            "libinjection",
        )
    if facts.managed_ruleset and facts.rules_slow:
        yield Finding(
            "warn",
            "each managed rule looks at each request by itself: there is no Hyperscan to rely on, or their"
            " patterns could not be compiled",
            "Verdicts are the same, an inspection costs up to half as much again. x86-64 with Python 3.11 to"
            " 3.13 has it. Compiling is tried again every ten minutes; the log says why it failed.",
            "hyperscan",
        )


def _quarantine(facts: Facts) -> Iterator[Finding]:
    if facts.quarantined:
        objects = "stateful object is" if facts.quarantined == 1 else "stateful objects are"
        yield Finding(
            "fail",
            f"{facts.quarantined} {objects} in quarantine: three processes ended while each of them ran",
            "`edgecli object list` shows them, `object info` says why, `object release` lets one run again.",
        )


def _apart(facts: Facts) -> Iterator[Finding]:
    if facts.classes_apart:
        classes = "class has" if facts.classes_apart == 1 else "classes have"
        yield Finding(
            "warn",
            f"{facts.classes_apart} {classes} a process apart: their code ended one that others share",
            "`edgecli object apart list` names them, the log says what their code did.",
        )


def _targets(facts: Facts) -> Iterator[Finding]:
    if facts.targets_unknown:
        yield Finding(
            "warn",
            f"{facts.targets_unknown} targets of flattened aliases were never resolved: their names are"
            " answered SERVFAIL",
            "The server's log names one a minute. Does the resolver answer (--resolver)?",
        )


def _credentials(facts: Facts) -> Iterator[Finding]:
    if facts.refused_credentials >= REFUSED_WARN:
        yield Finding(
            "warn",
            f"{facts.refused_credentials} unknown credentials were refused in five minutes",
            "The log names the networks: a program with a token that was deleted, or guesses.",
        )


def _sign_in(facts: Facts) -> Iterator[Finding]:
    if facts.sign_in_trouble:
        step = "The other ways in stay. Is its address right, and can this machine reach it?"
        yield Finding("warn", f"the OpenID provider fails: {facts.sign_in_trouble}", step)


def _backups(facts: Facts) -> Iterator[Finding]:
    made = "no backup has succeeded yet"
    if facts.backup_made_us:
        made = f"the newest good one is of {_minute(facts.backup_made_us)}"
    if facts.backup_error:
        words = f"the last backup failed: {facts.backup_error}; {made}"
        yield Finding("fail", words, "Run `edgecli backup` again.")
    elif facts.backup_hours_max and facts.now_us - facts.backup_made_us > facts.backup_hours_max * HOUR_US:
        words = f"there is no backup of the last {facts.backup_hours_max} hours; {made}"
        yield Finding("warn", words, "Does its timer run? `edgecli backup DIR` makes one.")


def _minute(moment_us: int) -> str:
    moment = datetime.fromtimestamp(moment_us // SECOND_US, UTC)
    return f"{moment.isoformat(' ', 'minutes').removesuffix('+00:00')} UTC"


def _alerts(facts: Facts) -> Iterator[Finding]:
    for name, error, _ in facts.sinks_failing:
        step = f"`edgecli alert test {name}` tries it; alerts of other receivers are not held up."
        yield Finding("fail", f"alerts do not reach {name}: {error}", step, name)


CHECKS: Final[tuple[Check, ...]] = (
    Check("supervisor", "", "every process runs or waits for a start", _supervisor, withholds=True),
    Check("control", "", "control answers", _control, unready=True),
    Check("processes", "process", "every process answers", _processes, unready=True),
    Check("feed", "process", "every process and every machine that follows has the newest changes", _feed),
    Check("store", "database", "the databases can be written", _store, unready=True),
    Check("cluster", "", "this node answers, and writes are on two machines", _cluster, unready=True),
    Check("lost-writes", "", "nothing that was acknowledged is missing", _lost_writes, unready=True),
    Check("disk", "part", "there is space on the disk", _disk, unready=True),
    Check("history", "process", "objects' past is kept as long as promised, and can be read", _history),
    Check("rules", "rule set", "the managed rules are ready", _rules, unready=True),
    Check("detectors", "library", "the engine of the managed rules is complete", _detectors),
    Check("certificates", "name", "no certificate ends within three weeks", _certificates),
    Check("secondary-zones", "zone", "every secondary zone is as its primary has it", _secondary_zones),
    Check("restored-zones", "zone", "no zone waits for what follows a restore", _restored_zones),
    Check("catalogs", "catalog", "every catalog that is followed was taken whole", _catalogs),
    Check("clock", "", "the clock goes forward", _clock),
    Check("targets", "", "every target of a flattened alias is known", _targets),
    Check("quarantine", "", "no stateful object is in quarantine", _quarantine),
    Check("apart", "", "no class of stateful objects ended a process that others share", _apart),
    Check("credentials", "", "few unknown credentials were sent", _credentials),
    Check("sign-in", "", "the OpenID provider answers, where there is one", _sign_in),
    Check("backups", "", "the last backup did not fail", _backups),
    Check("alerts", "receiver", "every receiver takes its alerts", _alerts),
)
NAMES: Final = HEALTH_CHECKS
assert tuple(check.name for check in CHECKS) == NAMES, "each check has its place on /metrics"
_UNREADY = frozenset(check.name for check in CHECKS if check.unready)
_WITHHOLDING = tuple(check for check in CHECKS if check.withholds)


def examine(facts: Facts) -> Iterator[tuple[str, Finding]]:
    """The findings of every check by its name; one that found nothing has one that is ok."""
    for check in CHECKS:
        found = bounded(check.find(facts))
        for one in found or [Finding("ok", check.fine)]:
            yield check.name, one


def unready(rows: Iterable[Row]) -> list[Row]:
    """Those because of which this server is the wrong place for a request."""
    return [row for row in rows if row.state == "fail" and row.check in _UNREADY]


def withheld(facts: Facts) -> str:
    """Why the unit's watchdog gets no ping; empty when it gets one."""
    found = (one for check in _WITHHOLDING for one in check.find(facts) if one.state == "fail")
    return "; ".join(one.message for one in found)
