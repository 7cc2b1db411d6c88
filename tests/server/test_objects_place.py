"""What an objects process of a cluster refuses before it has a place there, in words with the next step."""

import asyncio

import pytest

from edgestead import StatefulObject, config
from edgestead.objects.runtime.classes import describe
from edgestead.server.errors import StartError
from edgestead.server.objects import main
from edgestead.server.objects.place import _member_with_objects, _over
from edgestead.server.supervisor.node_estate import NodeEstate
from tests.support.nodes import Cluster


class Log(StatefulObject):
    pass


class Own(StatefulObject):
    durability = "sqlite"


class Told:
    def __init__(self):
        self.reasons = []

    def failed(self, reason):
        self.reasons.append(reason)


def test_a_class_that_is_durable_on_one_machine_is_refused():
    status = Told()
    main._get_ready_for_cluster(status, {"Log": describe(Log)})
    assert status.reasons == []

    with pytest.raises(SystemExit):
        main._get_ready_for_cluster(status, {"Log": describe(Log), "Own": describe(Own)})

    (reason,) = status.reasons
    assert reason.startswith('class Own: durability = "sqlite" keeps its objects on one machine')
    assert "leave it out" in reason


def test_a_node_without_the_role_is_refused(tmp_path):
    cluster = Cluster(tmp_path)
    for name, roles in (("two", ("control", "edge")), ("three", ("control", "objects"))):
        member = cluster.node(name, *roles)
        folder = member.key_file.parent
        if "objects" in roles:
            assert _member_with_objects(folder).peer.name == "three"
        else:
            with pytest.raises(StartError, match=r"two has not the role objects.*invite it again"):
                _member_with_objects(folder)


def test_a_node_without_control_is_refused_before_anything_starts(tmp_path):
    (tmp_path / "cluster.toml").write_text("[cluster]\n")
    flags = {"cluster": str(tmp_path), "objects": ("a.b",), "objects-workers": "1"}

    with pytest.raises(StartError, match="invite it again with --role control,objects,edge"):
        with NodeEstate(config.load(flags, None)):
            pass


def test_a_place_that_this_machine_has_not_any_more_takes_no_calls():
    async def main():
        with pytest.raises(ConnectionError, match="no such process"):
            await _over(("/run/calls-0",), 1)(asyncio.Protocol)

    asyncio.run(main())


def test_a_folder_without_an_identity_is_refused(tmp_path):
    with pytest.raises(StartError, match="no identity of a node"):
        _member_with_objects(tmp_path)
