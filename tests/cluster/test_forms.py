"""Two releases in one cluster: each is written to in a form that it reads, or told so in words."""

import pytest

from edgestead.cluster.forms import Forms
from edgestead.cluster.placement import Worker
from edgestead.cluster.slots import View
from edgestead.server.founding.look import _forms

OLD, NEW, NEXT = Forms(1, 1), Forms(1, 2), Forms(2, 3)


@pytest.mark.parametrize(
    ("own", "other", "form"), [(OLD, OLD, 1), (OLD, NEW, 1), (NEW, OLD, 1), (NEW, NEXT, 2), (NEXT, OLD, None)]
)
def test_both_ends_know_the_form_or_none_is_sent(own, other, form):
    assert own.for_other(other.newest) == form
    assert form is None or not other.refusal(form)


def test_what_lies_too_far_apart_is_refused_in_words():
    assert "newer release" in OLD.refusal(2)
    assert "older release" in NEXT.refusal(1)


def test_upgrade_check_names_the_nodes_between_which_no_call_would_pass():
    workers = {n: Worker(n, node, 0, "", 0, form=form) for n, (node, form) in enumerate([("a", 1), ("b", 4)])}

    of_a, of_b = _forms(View(workers, {}, 0), NEXT)

    assert of_a.startswith("objects of a know calls up to form 1")
    assert "upgrade that node" in of_a
    assert "older than the cluster" in of_b
    assert _forms(View(workers, {}, 0), Forms(1, 4)) == []
