"""What docs/setup.rst says about work without a network."""

import subprocess
import sys

import pytest

from tests.docs.pages import ROOT
from tests.needs import needs

WARNING = "The hostname of the client socket cannot be retrieved. err=-3"
NO_NAME_SERVER = """
set -e
ip link set lo up
echo "nameserver 127.0.0.1" > "$1/resolv.conf"  # where none listens
echo "hosts: files dns" > "$1/nsswitch.conf"
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
shift
exec "$@"
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


def without_name_server(folder, *command):
    inside = ["unshare", "-rnm", "bash", "-c", NO_NAME_SERVER, "offline", str(folder)]
    return subprocess.run(
        [*inside, *command], capture_output=True, text=True, timeout=240, cwd=ROOT
    )


@pytest.mark.nightly
@needs("unshare", "ip")
@pytest.mark.cold("it has a file system of its own, with other settings for names")
def test_a_run_without_a_name_server_warns_and_is_fine(tmp_path):
    if without_name_server(tmp_path, "true").returncode:
        pytest.skip("this kernel gives this user no network and mounts of its own")
    program = ["--nproc-per-node=2", "src/02_hello_ranks.py"]
    done = without_name_server(tmp_path, *TORCHRUN, *program)
    assert done.returncode == 0, done.stderr
    assert WARNING in done.stderr
    page = (ROOT / "docs" / "setup.rst").read_text(encoding="utf-8")
    assert WARNING in page
