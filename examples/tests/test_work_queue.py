"""The work queue: who gets a job, when it is given to somebody else, and what a crash leaves."""

import pytest


@pytest.fixture
def mail(objects):
    return objects.WorkQueue["mail"]


def test_a_job_is_handed_to_one_worker_at_a_time(mail):
    first, second = mail.add({"to": "ann"}), mail.add({"to": "bob"})

    assert mail.claim("w1") == {"id": first, "tries": 1, "payload": {"to": "ann"}}
    assert mail.claim("w2")["id"] == second
    assert mail.claim("w3") is None


def test_a_job_that_is_not_finished_goes_to_the_next_worker(objects, mail):
    job = mail.add("letter")
    mail.claim("w1")

    objects.advance(29)
    assert mail.claim("w2") is None
    objects.advance(1)
    assert mail.claim("w2") == {"id": job, "tries": 2, "payload": "letter"}
    assert not mail.done(job, "w1")
    assert mail.done(job, "w2")
    assert mail.count() == 0


@pytest.mark.parametrize("power", [False, True])
def test_a_job_that_was_acknowledged_outlives_a_crash(objects, mail, power):
    job = mail.add("letter")

    objects.crash(power=power)

    assert mail.claim("w1")["id"] == job


def test_a_finished_job_leaves_nothing_behind(objects, mail):
    mail.done(mail.add("letter"), "nobody")
    job = mail.claim("w1")["id"]

    assert mail.done(job, "w1")
    assert objects.storage(mail).list() == {}
