"""Objects on a real file system that is full: commits are refused, the process goes on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1024 * 1024
DISK_BYTES = 64 * MIB


@pytest.mark.parametrize("free_mib", [31], ids=lambda free: f"{free} MiB free")
def test_large_commits_on_a_full_disk_are_refused_and_the_process_goes_on(
    tmp_path: Path, free_mib: int
) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("NOT TESTED: a small file system needs root and unshare")
    mounted = f"mount -t tmpfs -o size={DISK_BYTES} tmpfs '{tmp_path}' && exec \"$@\""
    command = [sys.executable, "-m", "tests.objects.small_disk_process"]
    command += [str(tmp_path), str(DISK_BYTES - free_mib * MIB)]

    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted, "sh", *command], capture_output=True, timeout=600, check=False
    )

    if b"mount:" in done.stderr:
        pytest.skip(f"NOT TESTED: {done.stderr.decode()}")
    assert done.returncode == 0, done.stderr.decode()[-4_000:]
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["refused"], "the disk was too large for this test"
    assert first["found"] == [f"{key}-{part}" for key in first["told"] for part in range(3)]
    assert second["again"] == first["found"]
