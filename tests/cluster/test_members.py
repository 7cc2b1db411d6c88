"""Whom a leader's writes wait for, and for how long."""

from edgestead.cluster.lease import LEASE_MS, RENEW_MS
from edgestead.cluster.members import ADMITTED, FENCED, PATIENCE_MS, Members, Row


def gone_after_ms(*, renews_at_ms=()):
    """When a member that is silent from 0 on, and fenced when patience ends, is waited for no longer."""
    members, renewed, kind = Members(), 7, ADMITTED
    for now_ms in range(0, 10_000, RENEW_MS):
        renewed += now_ms in renews_at_ms
        members.seen({1: Row(renewed, kind)}, now_ms, now_ms)
        if members.to_fence(5, now_ms):
            members.fenced(1)
            kind = FENCED
        if members.to_delete(now_ms):
            return now_ms
    raise AssertionError


def test_a_member_that_is_dead_holds_a_write_for_a_lease_and_not_for_patience_before():
    assert gone_after_ms() == LEASE_MS


def test_one_that_renewed_before_it_was_fenced_may_answer_for_a_lease_from_then():
    assert gone_after_ms(renews_at_ms=(PATIENCE_MS,)) == PATIENCE_MS + LEASE_MS
