"""The collector of cycles while a process of the server loads."""

import gc
import json
import subprocess
import sys

import pytest

from edgestead.server.entrance import loading

MODULE = """
import gc, json, sys
loaded = gc.isenabled()
def main():
    print(json.dumps([loaded, gc.isenabled(), gc.get_freeze_count() > 0, sys.argv[1:]]))
"""


def test_a_process_collects_nothing_until_its_module_is_loaded(tmp_path):
    (tmp_path / "module_of_a_child.py").write_text(MODULE)

    run = subprocess.run(
        [sys.executable, "-m", "edgestead.server.entrance", "module_of_a_child", "7", "dns-0"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    assert json.loads(run.stdout) == [False, True, True, ["7", "dns-0"]]


def test_it_collects_again_after_what_cannot_be_loaded():
    with pytest.raises(ImportError, match="none"), loading():
        raise ImportError("none")

    assert gc.isenabled()
