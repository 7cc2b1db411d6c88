"""What is mutated, which tests must notice, and which changes no test can see.

Owns  the rows, the size of their samples, the explained survivors.
Not   making mutants (mutmut), or running tests.
"""

from typing import NamedTuple

SCORE_MIN = 0.90  # of a row's sample, but for the explained
SEED = 17


class Row(NamedTuple):
    """Files below src/edgestead that are mutated, and tests below tests/ that must notice.

    Quick tests within one process: what runs in another one is not seen to have run at all.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]
    sample: int
    """How many mutants are run, chosen by `SEED`; all of them when there are fewer."""


ROWS = {
    "store": Row(
        ("store/*.py", "sqlite/*.py"),
        (
            "store/contract",
            "store/test_connection.py",
            "store/test_copies.py",
            "store/test_migrate.py",
            "store/test_portable.py",
            "store/test_columns.py",
            "store/test_sqlite_control.py",
            "store/test_power_cut.py",
            "store/test_upkeep.py",
            "store/test_witness.py",
            "store/test_writes.py",
            "kv/test_kv_copies.py",
            "kv/test_kv_disk.py",
            "objects/test_segments.py",
        ),
        100,
    ),
    "sqlite/objectlog": Row(
        ("sqlite/objectlog/*.py",),
        (
            "objects/test_past.py",
            "objects/test_books.py",
            "objects/test_files.py",
            "objects/test_segments.py",
            "objects/test_runners.py",
            "store/contract/test_objects_log.py",
            "store/contract/test_objects_past.py",
            "store/contract/test_objects_alarms.py",
            "objects/test_log.py",
            "objects/test_log_faults.py",
            "objects/test_commits.py",
            "objects/test_operate.py",
            "objects/test_operate_time.py",
            "objects/test_quarantine.py",
            "objects/test_recovery.py",
            "objects/test_watermark.py",
            "objects/test_history.py",
            "objects/test_adoption.py",
            "objects/test_schema.py",
        ),
        100,
    ),
    "feed": Row(
        ("feed/*.py",),
        (
            "feed/test_promise.py",
            "feed/test_promise_members.py",
            "feed/test_promise_random.py",
            "feed/test_leases.py",
            "feed/test_protocol.py",
            "feed/test_publisher.py",
            "feed/test_link.py",
            "feed/test_follower.py",
            "feed/test_following.py",
        ),
        60,
    ),
    "usecases/access": Row(
        (
            "usecases/access/admission.py",
            "usecases/access/authorise.py",
            "usecases/access/lineage.py",
            "usecases/access/table.py",
        ),
        (
            "usecases/test_access.py",
            "usecases/test_admission.py",
            "usecases/test_identities.py",
            "rest/test_lineage.py",
            "usecases/test_token_grants.py",
            "usecases/test_token_draft.py",
            "rest/test_permissions.py",
            "rest/test_credentials.py",
            "rest/test_tokens.py",
            "rest/test_tokens_used.py",
        ),
        100,
    ),
    "dns/answer": Row(
        ("dns/answer.py",),
        (
            "dns/test_answers.py",
            "dns/test_edns.py",
            "dns/test_cookies.py",
            "dns/test_packets.py",
            "dns/test_own.py",
            "dns/test_rates.py",
            "dns/test_kept_replies.py",
        ),
        100,
    ),
    "waf/engine": Row(
        ("waf/engine.py",),
        (
            "waf/test_verdicts.py",
            "waf/test_engine.py",
            "waf/test_late_parts.py",
            "waf/test_samples.py",
            "waf/test_tuning.py",
            "waf/test_portions.py",
        ),
        100,
    ),
    "edge/client": Row(("edge/http/client.py",), ("edge/test_client.py", "edge/test_deadlines.py"), 60),
    "edge/machine": Row(
        (
            "edge/http/machine.py",
            "edge/http/request_side.py",
            "edge/http/answer_side.py",
            "edge/http/ends.py",
            "edge/http/client_stream.py",
        ),
        (
            "edge/test_machine.py",
            "edge/test_machine_random.py",
            "edge/test_held_answers.py",
            "edge/test_deadlines.py",
            "edge/test_client.py",
        ),
        80,
    ),
}

# (file, line as it is, line of the mutant) → why no test can tell them apart.
EXPLAINED: dict[tuple[str, str, str], str] = {
    (
        "usecases/access/authorise.py",
        "if read is None or edited is None:",
        "if read is None and edited is None:",
    ): "both are None for whoever may do everything, and neither for anybody else",
    (
        "usecases/access/authorise.py",
        "return (read,) if edited.is_nothing else (read, edited)",
        "return (read,) if (edited.is_nothing) and False else (read, edited)",
    ): "a list of no zones more: the same zones, by one needless query",
    (
        "waf/engine.py",
        "yield from self._search.look(run, _OF_REQUEST, early=1 if request.body else 0)",
        "yield from self._search.look(run, _OF_REQUEST, early=1 if (request.body) and False else 0)",
    ): "`early` only saves a search that another one repeats: the same verdict, later",
    (
        "sqlite/kv.py",
        'bytes_ = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))',
        'bytes_ = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (+len(cursor) % 4))',
    ): "as much padding or more of it, which the decoder passes over",
    (
        "sqlite/control.py",
        "lives.append((lives[-1][0] + 1 if lives else 1, feed_id, head))",
        "lives.append((lives[-1][0] + 1 if lives else 2, feed_id, head))",
    ): "the numbers of lives say their order and how many there are, from wherever they begin",
    (
        "sqlite/writer.py",
        "return len(jobs)",
        "return None",
    ): "it cuts the list of those that were done, and a cut at None leaves all of it",
    (
        "sqlite/witness.py",
        "self._descriptor = -1",
        "self._descriptor = -2",
    ): "each number below 0 says that it is closed",
    (
        "sqlite/objectlog/archive.py",
        "while offset + RECORD_HEADER_BYTES <= segment.upto:",
        "while offset + RECORD_HEADER_BYTES < segment.upto:",
    ): "what is not read is an empty record at the very end",
    (
        "sqlite/objectlog/archive.py",
        "if length > len(window):",
        "if length >= len(window):",
    ): "what was read is read once more",
    (
        "store/history/reader.py",
        "stored = len(entry.body) * row.stored // max(1, row.raw)",
        "stored = len(entry.body) * row.stored // max(2, row.raw)",
    ): "a block has a commit, which takes more than two bytes",
    (
        "store/history/thinning.py",
        "self._intact = self._total = len(self._state.image) // PAGE_BYTES  # pages never cut off meanwhile",
        "self._intact = self._total = len(self._state.image) / PAGE_BYTES  # pages never cut off meanwhile",
    ): "a database is whole pages: the same number",
    (
        "dns/answer.py",
        "if kind not in PLAIN or len(name) > NAME_OCTETS_MAX:",
        "if kind not in PLAIN or len(name) >= NAME_OCTETS_MAX:",
    ): "a name of 255 octets goes the longer way, to the same reply",
    (
        "edge/http/machine.py",
        "self._retries += 1",
        "self._retries += 2",
    ): "there may be one, so more than one is as much",
    (
        "store/history/thinning.py",
        "rows = self._history.blocks(number, 0, 2**63 - 1)",
        "rows = self._history.blocks(number, 0, 2**63 - 2)",
    ): "the largest number that the database holds, which no position reaches",
    (
        "sqlite/objectlog/local.py",
        "known.epoch += 1",
        "known.epoch += 2",
    ): "an epoch is compared for equality alone, and only ever grows",
}

# Functions that make a module's tables while it is imported: a fork comes too late for them.
AT_IMPORT = {"edgestead.dns.answer.x__modes"}
