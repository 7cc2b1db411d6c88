"""Keys, transactions and alarms: named cases, each a list of steps on a fresh object."""

import math
import random
import re
from datetime import UTC, datetime

from tests.objects.reference.script import Steps, differs
from tests.objects.reference.wire import Function

DAY_MS = 86_400_000
FAR_MS = 4_102_444_800_000  # 2100-01-01
KEYS = ["", "a", "A", "aa", "ab", "b", "é", "\u007f", "\uffff", "\U00010000", "\U0001f600", "z", "0", "\x00"]
VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    2**53 - 1,
    2**70,
    -(2**70),
    1e300,
    "",
    "text with \x00, é and \U0001f600",
    b"",
    b"\x00\xff",
    [],
    [1, [2, [3]]],
    {},
    {"a": {"b": [None]}},
    {1, "two"},
    datetime(2024, 2, 29, 12, tzinfo=UTC),
    re.compile("a+b"),
    re.compile("A", re.IGNORECASE),
    TypeError("words"),
]


def put_all(*keys: str) -> Steps:
    return [["put", key, f"value of {key}"] for key in keys]


KEY_CASES: dict[str, Steps] = {
    "values come back as they were": [
        step
        for number, value in enumerate(VALUES)
        for step in (["put", f"k{number}", value], ["get", f"k{number}"])
    ],
    "what cannot be cloned": [
        ["put", "f", Function()],
        ["put", "f", [Function()]],
        ["put", {"good": 1, "bad": Function()}],
        ["get", ["f", "good", "bad"]],
        ["shared"],
        ["cycle"],
        ["fresh"],
    ],
    "get": [
        *put_all("b", "a", "é", "\U00010000", "\uffff"),
        ["get", "a"],
        ["get", "absent"],
        ["get", ["b", "absent", "a", "b"]],
        ["get", ["\uffff", "\U00010000", "é"]],
        ["get", []],
        ["get", [f"k{n}" for n in range(128)]],
        ["get", "k" * 2_048],
        ["get", "é" * 1_024],
        ["get"],
        differs(["get", 5], "types"),
        differs(["get", [5]], "types"),
        differs(["get", None], "types"),
        differs(["get", {}], "types"),
        ["get", "a", {"noCache": True, "allowConcurrency": True}],
        ["get", "a", None],
    ],
    "put": [
        ["put", "k"],
        differs(["put", None, 1], "types"),
        ["put", {"a": 1, "b": 2}],
        ["put", {}],
        ["put", {"a": 2, "b": 3}, {"allowUnconfirmed": True}],
        ["put", {"a": 4}, 5],
        ["put", "c", 1, {"noCache": True, "allowUnconfirmed": True}],
        ["put", {f"k{n}": n for n in range(128)}],
        ["put", "k" * 2_048, 1],
        ["put", "", "empty key"],
        ["get", ""],
        ["put", "large", "v" * 131_000],
        ["list", {"limit": 5}],
    ],
    "limits": [
        differs(["get", [f"k{n}" for n in range(129)]], "limits"),
        differs(["get", "k" * 2_049], "limits"),
        differs(["get", "é" * 1_025], "limits"),
        differs(["delete", [f"k{n}" for n in range(129)]], "limits"),
        differs(["delete", "k" * 2_049], "limits"),
        differs(["put", {f"l{n}": n for n in range(129)}], "limits"),
        differs(["put", "k" * 2_049, 1], "limits"),
        differs(["put", {"fine": 1, "k" * 2_049: 1}], "limits"),
        differs(["put", "larger", "v" * 132_000], "limits"),
        differs(["put", "larger", b"v" * 132_000], "limits"),
        differs(["list"], "limits"),
    ],
    "delete": [
        *put_all("a", "b", "c"),
        ["delete", "a"],
        ["delete", "a"],
        ["delete", ["a", "b", "c"]],
        ["delete", ["b", "b"]],
        ["delete", []],
        *put_all("d"),
        ["delete", ["d", "d"]],
        differs(["delete", 5], "types"),
        ["delete"],
        ["list"],
    ],
    "deleteAll": [
        ["setAlarm", FAR_MS],
        *put_all("a", "b"),
        ["deleteAll"],
        ["list"],
        ["getAlarm"],
        ["deleteAll", {"allowUnconfirmed": True, "noCache": True}],
        ["put", "a", 2],
        ["list"],
        ["transaction", [["put", "b", 1], ["deleteAll"], ["get", "b"]]],
        ["list"],
    ],
    "list": [
        *put_all(*KEYS),
        ["list"],
        ["list", {}],
        ["list", {"start": "a"}],
        ["list", {"startAfter": "a"}],
        ["list", {"startAfter": ""}],
        ["list", {"end": "b"}],
        ["list", {"end": ""}],
        ["list", {"start": "a", "end": "a"}],
        ["list", {"start": "b", "end": "a"}],
        ["list", {"prefix": "a"}],
        ["list", {"prefix": ""}],
        ["list", {"prefix": "\uffff"}],
        ["list", {"prefix": "\U0001f600"}],
        ["list", {"prefix": "a", "start": "ab"}],
        ["list", {"prefix": "a", "start": "b"}],
        ["list", {"prefix": "b", "start": "a"}],
        ["list", {"prefix": "a", "end": "a"}],
        ["list", {"prefix": "a", "end": "ab"}],
        ["list", {"prefix": "a", "startAfter": "a", "reverse": True}],
        ["list", {"reverse": True}],
        ["list", {"reverse": True, "limit": 3}],
        ["list", {"reverse": True, "start": "b", "end": "é"}],
        ["list", {"limit": 1}],
        ["list", {"limit": 1_000}],
        ["list", {"limit": 0}],
        ["list", {"limit": -1}],
        differs(["list", {"limit": 1.5}], "types"),
        differs(["list", {"limit": "1"}], "types"),
        ["list", {"start": "a", "startAfter": "a"}],
        differs(["list", {"start": 5}], "types"),
        differs(["list", {"unknown": 1}], "options"),
        ["list", {"noCache": True, "allowConcurrency": True}],
    ],
    "options that a method does not take": [
        differs(["put", "a", 1, {"allowConcurrency": True}], "options"),
        differs(["get", "a", {"allowUnconfirmed": True}], "options"),
        differs(["get", "a", {"noCache": "yes"}], "types"),
        ["get", "a", 5],
        differs(["list"], "options"),
    ],
    "transaction": [
        ["put", "a", 1],
        ["transaction", [["txn.get", "a"], ["txn.put", "a", 2], ["txn.get", "a"], ["get", "a"]]],
        ["get", "a"],
        ["transaction", [["txn.put", "a", 3], ["throw", "changed my mind"]]],
        ["get", "a"],
        [
            "transaction",
            [["txn.put", {"b": 1, "c": 2}], ["txn.delete", "a"], ["txn.list"], ["txn.delete", ["a", "b"]]],
        ],
        ["list"],
        [
            "transaction",
            [["txn.put", "d", 1], ["txn.rollback"], ["txn.rollback"], ["txn.get", "d"], ["txn.put", "d", 1]],
        ],
        ["list"],
        ["transaction", []],
        ["keep"],
        ["kept.get", "a"],
        ["kept.put", "a", 1],
        ["kept.delete", "a"],
        ["kept.list"],
        ["kept.rollback"],
        ["list"],
    ],
    "transactions inside one another": [
        [
            "transaction",
            [["txn.put", "a", 1], ["transaction", [["txn.put", "b", 1], ["throw", "inner"]]], ["list"]],
        ],
        ["transaction", [["transaction", [["txn.put", "b", 2]]], ["list"], ["throw", "outer"]]],
        ["list"],
        ["transaction", [["transaction", [["txn.put", "c", 2], ["txn.rollback"]]], ["txn.put", "d", 1]]],
        ["list"],
    ],
    "an alarm": [
        ["getAlarm"],
        ["setAlarm", FAR_MS],
        ["getAlarm"],
        ["setAlarm", datetime(2099, 1, 1, tzinfo=UTC)],
        ["getAlarm"],
        ["deleteAlarm"],
        ["getAlarm"],
        ["deleteAlarm"],
        ["setAlarm", FAR_MS, {"allowUnconfirmed": True, "allowConcurrency": True}],
        ["transaction", [["setAlarm", FAR_MS + DAY_MS], ["getAlarm"], ["throw", "back"]]],
        ["getAlarm"],
        ["transaction", [["deleteAlarm"], ["getAlarm"]]],
        ["getAlarm"],
        ["setAlarm", FAR_MS],
        ["put", "alarm", 1],
        ["list"],
        ["setAlarm"],
        ["setAlarm", "soon"],
        differs(["setAlarm", math.nan], "moments"),
        differs(["setAlarm", math.inf], "moments"),
        ["getAlarm", {"allowConcurrency": True}],
        ["deleteAlarm", {"allowUnconfirmed": True}],
        ["sync"],
    ],
    "an alarm in the past": [
        ["transaction", [["setAlarm", 1_000], ["alarm is soon"]]],
        differs(["setAlarm", 0], "past"),
        differs(["setAlarm", -1], "past"),
        ["sync"],
    ],
}

KEYS_ONLY_CASES: dict[str, Steps] = {
    "a class without SQL": [["sqlRaw", "SELECT 1"], ["put", "a", 1], ["get", "a"]],
}


def random_case(seed: int, steps: int = 120) -> Steps:
    """Keys at random, with every option of list."""
    choose = random.Random(seed)
    made: Steps = []
    for number in range(steps):
        key, keys = choose.choice(KEYS), choose.sample(KEYS, 3)
        ranges = {
            "start": choose.choice(KEYS),
            "startAfter": choose.choice(KEYS),
            "end": choose.choice(KEYS),
            "prefix": choose.choice(KEYS),
            "reverse": choose.random() < 0.5,
            "limit": choose.randint(1, 6),
        }
        ranges.pop(choose.choice(("start", "startAfter")))
        made.append(
            choose.choice(
                (
                    ["put", key, number],
                    ["put", dict.fromkeys(keys, number)],
                    ["get", key],
                    ["get", keys],
                    ["delete", key],
                    ["delete", keys],
                    [
                        "list",
                        {name: ranges[name] for name in choose.sample(sorted(ranges), choose.randint(0, 3))},
                    ],
                    [
                        "transaction",
                        [["txn.put", key, -number], ["txn.list", {"limit": 2}], ["throw", "back"]],
                    ],
                    ["transaction", [["txn.delete", keys], ["txn.put", key, -number]]],
                )
            )
        )
    return made
