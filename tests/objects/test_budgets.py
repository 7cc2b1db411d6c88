"""What calls that wait for one object may hold."""

import asyncio
from types import SimpleNamespace

import pytest

from edgestead.model.budgets import table
from edgestead.model.budgets.ledger import Ledger
from edgestead.model.refusals.object import BadCall
from edgestead.objects import limits
from edgestead.objects.errors import Overloaded
from edgestead.objects.ids import from_name
from edgestead.objects.runtime.calls import pack_arguments, unpack
from edgestead.objects.runtime.classes import StatefulObject
from edgestead.rest.objects_calls import Calls
from tests.objects.nodes import run

LARGE = pack_arguments((b"x" * 100_000,), {})
SMALL = pack_arguments((b"x",), {})


class Slow(StatefulObject):
    async def take(self, value):
        await asyncio.sleep(1)
        return len(value)


@pytest.fixture
def ledger():
    return Ledger(tell=lambda *_: None)


async def outcomes(node, name, arguments, times):
    """Of so many calls at a time: how many were answered, how many refused."""
    calls = [node.call(from_name("Slow", name), "take", arguments) for _ in range(times)]
    replies = await asyncio.gather(*calls)
    refused = 0
    for reply in replies:
        try:
            unpack(reply)
        except Overloaded:
            refused += 1
    return times - refused, refused


def test_arguments_that_wait_for_one_object_have_a_budget(logs, ledger):
    async def script(node):
        node._arguments.limit = 250_000
        large, small, other = await asyncio.gather(
            outcomes(node, "a", LARGE, 5), outcomes(node, "a", SMALL, 5), outcomes(node, "b", LARGE, 2)
        )
        again = await outcomes(node, "a", LARGE, 2)
        return large, small, other, again, node._arguments.held

    assert run(logs, script, Slow, ledger=ledger) == ((2, 3), (5, 0), (2, 0), (2, 0), {})
    assert ledger.refused(table.OBJECT_BYTES) == 3


def test_calls_beyond_the_number_of_one_object_are_counted(logs, ledger, monkeypatch):
    monkeypatch.setattr(limits, "CALLS_WAITING_MAX", 3)

    async def script(node):
        return await outcomes(node, "a", SMALL, 5)

    assert run(logs, script, Slow, ledger=ledger) == (3, 2)
    assert ledger.refused(table.OBJECT_CALLS) == 2


def test_a_call_of_more_values_than_may_be_is_refused_before_it_is_read(ledger):
    calls = Calls(SimpleNamespace(ledger=ledger), None, None, None)
    calls._check_values(b'{"args":["' + b",[{" * 200_000 + b'"]}')

    with pytest.raises(BadCall):
        calls._check_values(b'{"args":[' + b"[]," * table.CALL_VALUES.limit + b"1]}")
    assert ledger.refused(table.CALL_VALUES) == 1
