"""A log that is copied while it is appended to: the copy is one that a crash could have left."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from edgestead.objects.runtime.node import Node
from edgestead.server.objects.copying import copy_log
from edgestead.sqlite import copies
from edgestead.sqlite.copies import CHUNK_BYTES
from edgestead.sqlite.objectlog.checking import check_folder
from tests.objects.logs import keys, put, ref
from tests.objects.test_schema import open_log

VALUE = bytes(range(256)) * 1_200  # three of them fit in a piece, the fourth goes over its end
NO_NODE = cast(Node, None)  # there are no databases that it would have to copy


def test_what_is_appended_between_two_pieces_is_not_in_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(str(tmp_path / "one"), segment_bytes=4 * CHUNK_BYTES)
    lease = log.lease(ref())
    for _ in range(3):
        put(log, lease, keys(a=VALUE))
    write_all, late = copies._write_all, [VALUE, VALUE]

    def write_while_it_grows(*piece: Any) -> None:
        while late:
            put(log, lease, keys(a=late.pop()))
        write_all(*piece)

    monkeypatch.setattr(copies, "_write_all", write_while_it_grows)
    asyncio.run(copy_log(NO_NODE, log, str(tmp_path / "two")))
    log.close()

    assert not late
    assert list(check_folder(str(tmp_path / "two"))) == []
