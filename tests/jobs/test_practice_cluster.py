"""The practice cluster does what it promises, for root and for an ordinary user."""

import os
import pty
import pwd
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.needs import CLUSTER, skip_without
from workshop.cluster.nodes import machine, missing

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = "nobody"
USERS = ["an ordinary user"]
if os.geteuid() == 0:
    USERS.append(pytest.param("root", marks=pytest.mark.nightly))
POWERS = ["nodes_are_machines", "commands_pass_through", "power", "cable_and_network"]
LIFE = ["two_and_none", "interruption", "crash_and_restart", "places", "inside"]
PROGRAMS = {"powers_of_the_cluster.py": POWERS, "life_of_the_cluster.py": LIFE}
PROGRAM_OF = {name: path for path, names in PROGRAMS.items() for name in names}
ALSO = {"nodes_are_machines": ["ps"], "commands_pass_through": ["pgrep"]}
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def copy():
    """The package alone, where any user may read it; its path is short."""
    skip_without(CLUSTER)
    with tempfile.TemporaryDirectory(prefix="pc-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(ROOT / "workshop", Path(folder) / "workshop")
        for program in PROGRAMS:
            shutil.copy(HERE / program, folder)
        yield Path(folder)


def become_ordinary(words: list[str]) -> list[str]:
    """The command as an ordinary user runs it; tests in a container are root."""
    if os.geteuid():
        return words
    user = pwd.getpwnam(ORDINARY)
    identity = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return ["setpriv", *identity, *words]


def python_of(user: str) -> str:
    """An interpreter that the user may run: root's own may lie in root's home."""
    for python in (sys.executable, "/usr/bin/python3"):
        # setpriv starts even what the user may not: the user must try to start it
        new = "import sys; sys.exit(sys.version_info < (3, 10))"
        words = ["sh", "-c", 'exec "$0" -c "$1"', python, new]
        words = words if user == "root" else become_ordinary(words)
        if subprocess.run(words, cwd="/", capture_output=True).returncode == 0:
            return python
    pytest.skip("no Python that an ordinary user may run: sudo apt-get install python3")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", PROGRAM_OF)
def test_power_of_the_cluster(copy, user, name):
    skip_without(*ALSO.get(name, ()))
    with tempfile.TemporaryDirectory(prefix="pc-", dir="/tmp") as place:
        words = [python_of(user), str(copy / PROGRAM_OF[name]), place, name]
        if user != "root" and os.geteuid() == 0:
            shutil.chown(place, ORDINARY)
            words = become_ordinary(words)
        done = subprocess.run(
            words,
            cwd=copy,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "HOME": place},
        )
    assert done.returncode == 0, f"{name} as {user}:\n{done.stdout}{done.stderr}"


def test_every_power_is_tried_out():
    for program, names in PROGRAMS.items():
        found = re.findall(
            r'^def (\w+)\(\):\n    """', (HERE / program).read_text(), re.M
        )
        assert found == names


# What this machine lacks


def test_missing_programs_are_named_with_the_command_that_installs_them(monkeypatch):
    packages = {"slurm-wlm": ("no-such-slurmd",), "iproute2": ("ls",), "munge": ("hm",)}
    monkeypatch.setattr(machine, "PACKAGES", packages)
    [reason] = missing()
    assert reason.startswith("this machine has no no-such-slurmd, hm: ")
    assert "sudo apt-get install --no-install-recommends slurm-wlm munge`" in reason


def ask_missing(copy, words: list[str], python: str, **more: str) -> str:
    code = "from workshop.cluster.nodes import missing; print(missing())"
    words = [*words, python, "-c", code]
    done = subprocess.run(
        words, cwd=copy, env=os.environ | more, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop a right of root")
def test_a_container_without_the_right_is_named_with_the_cure(copy):
    drop = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    said = ask_missing(copy, drop, sys.executable, container="by hand")
    assert "forbids namespaces to root" in said
    assert "docker run --cap-add SYS_ADMIN" in said and "--privileged" not in said


def test_forbidden_user_namespaces_are_named_with_the_cure(copy):
    # A user in a world of their own may forbid all further ones.
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    world = ["unshare", "--user", "--map-current-user", "--keep-caps"]
    words = become_ordinary([*world, "sh", "-c", forbid, "sh"])
    said = ask_missing(copy, words, python_of("an ordinary user"))
    assert "forbids user namespaces" in said
    assert "`sudo sysctl -w user.max_user_namespaces=10000`" in said


@pytest.mark.parametrize(
    ("setting", "value", "cure"),
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ],
)
def test_the_setting_in_the_way_is_named(tmp_path, monkeypatch, setting, value, cure):
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")
    monkeypatch.setattr(machine, "SETTINGS", tmp_path)
    assert f"`sudo sysctl -w {cure}`" in machine.cure_for_users()


# The command


@pytest.fixture
def workshop(monkeypatch):
    """`workshop cluster ...` with a directory of the test's own."""
    skip_without(CLUSTER)
    with tempfile.TemporaryDirectory(prefix="pc-", dir="/tmp") as folder:
        state = f"{folder}/c"

        def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "workshop.cli", "cluster", *words],
                cwd=ROOT,
                env={**os.environ, "WORKSHOP_CLUSTER": state},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                **options,
            )

        yield run
        run("down")


@pytest.mark.parametrize(
    "words",
    [
        *(["status"], ["shell"], ["shell", "--node", "n1"], ["run", "true"]),
        *(["run", "--node", "n1", "true"], ["off", "n1"], ["on", "n1"]),
        *(["link", "n1", "down"], ["rate", "1gbit"], ["delay", "1ms"]),
    ],
    ids=" ".join,
)
def test_no_cluster_is_one_sentence(workshop, words):
    done = workshop(*words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("cluster: no practice cluster is up in ")
    assert done.stderr.count("\n") == 1


def test_a_session_at_the_command_line(workshop):
    started = workshop("up", "--nodes", "2", "--gpus", "1")
    assert started.returncode == 0, started.stderr
    assert "n1, n2, each with 4 CPUs, 1 GPUs" in started.stdout
    again = workshop("up")
    assert again.returncode == 2 and "already up" in again.stderr
    assert workshop("off", "n2").returncode == 0
    assert workshop("delay", "2ms").returncode == 0
    assert workshop("delay", "5ms", "n2").returncode == 0
    assert workshop("rate", "1gbit").returncode == 0
    lines = workshop("status").stdout.splitlines()
    assert lines[1].split() == ["n1", "10.77.0.11", "on", "up", "idle"]
    assert lines[2].split()[:4] == ["n2", "10.77.0.12", "off", "up"]
    assert lines[3].startswith("rate 1gbit, delay 2 ms, n2 5 ms, files /tmp/pc-")
    assert workshop("on", "n2").returncode == 0
    assert workshop("link", "n2", "down").returncode == 0
    assert workshop("run", "--node", "n2", "hostname").stdout == "n2\n"
    # the options of a command are its own
    assert workshop("run", "bash", "-c", "exit 7").returncode == 7
    assert workshop("run", "bash", "-c", "kill -9 $$").returncode == -9
    assert workshop("run", "no-such-command").returncode == 127
    ended = workshop("down")
    assert (ended.returncode, ended.stdout) == (0, "The practice cluster is down.\n")
    assert workshop("down").returncode == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["up", "--nodes", "0"], "nodes must be 1 to 64, not 0"),
        (["up", "--nodes", "many"], "'many' is not a valid integer"),
        (["--state", "/tmp/a b", "up"], "letters, digits"),
        (["fly"], "No such command 'fly'"),
        (["run"], "Missing argument"),
    ],
)
def test_bad_input_gets_one_sentence_and_status_2(workshop, words, complaint):
    done = workshop(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert complaint in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_shell_has_a_prompt_of_its_own_and_ctrl_c_does_not_leave_it(workshop):
    """As typed at a terminal: a command, Ctrl-C during another, exit with a status."""
    assert workshop("up", "--nodes", "1").returncode == 0
    state = workshop("status").stdout.split()[-1]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.environ["WORKSHOP_CLUSTER"] = state
        command = [sys.executable, "-m", "workshop.cli", "cluster"]
        words = [*command, "shell", "--node", "n1"]
        os.execv(sys.executable, words)

    seen = ""

    def wait_for(text: str) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while text not in seen:
            assert time.monotonic() < end, seen
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096).decode(errors="replace")
        seen = seen.split(text, 1)[1]

    wait_for("[cluster n1 ")
    # What prints is what Ctrl-C shall end: the shell itself may be in between two.
    os.write(terminal, b"bash -c 'echo $((40 + 2)); exec sleep 1000'\n")
    wait_for("42\r\n")
    os.write(terminal, b"\x03")
    wait_for("[cluster n1 ")
    os.write(terminal, b"hostname; exit 5\n")
    wait_for("n1\r\n")
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 5
    os.close(terminal)
