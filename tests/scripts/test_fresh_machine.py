"""What a machine without the optional Debian packages has; hidden means hidden."""

import os
import subprocess
import sys

import pytest

from tools.debian_packages import PACKAGES, entries_to_hide, find, package_of
from tools.fresh_copy import ROOT

TOOL = ROOT / "tools" / "debian_packages.py"


def without(packages, *command):
    """Run a command without packages; skip where nothing can be hidden."""
    words = [sys.executable, str(TOOL), "hide", *packages, "--"]
    trial = subprocess.run([*words, "true"], capture_output=True, text=True)
    if trial.returncode == 2:
        pytest.skip(trial.stderr.strip())
    return subprocess.run([*words, *command], capture_output=True, text=True)


def programs_found(*packages):
    """Which programs of all packages a command finds that runs without some."""
    names = [program for package in PACKAGES.values() for program in package.programs]
    script = (
        "import os, shutil, sys\n"
        "path = os.environ['PATH'] + ':/usr/sbin'\n"
        "print(*[name for name in sys.argv[1:] if shutil.which(name, path=path)])\n"
    )
    done = without(packages, sys.executable, "-I", "-c", script, *names)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_hidden_programs_are_gone_and_no_others():
    present = {
        program
        for package in PACKAGES.values()
        for program in package.programs
        if find(program)
    }
    if not present:
        pytest.skip("nothing can be hidden: sudo apt-get install procps")
    assert programs_found() == set()
    one = package_of(sorted(present)[0])
    assert programs_found(one) == present - set(PACKAGES[one].programs)
    assert all(find(program) for program in present)  # here, nothing has changed


def test_what_a_fresh_machine_has_is_not_hidden():
    done = without([], "sh", "-c", "command -v git && command -v make && echo both")
    assert "both" in done.stdout


def test_a_link_to_a_hidden_program_is_hidden_too(tmp_path, monkeypatch):
    """Debian's mpirun is a link to a link to the program of a package."""
    program = tmp_path / "lib" / "mpirun.openmpi"
    program.parent.mkdir()
    program.touch()
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mpiexec").symlink_to(program)
    (folder / "mpirun").touch()
    (folder / "other").touch()
    files = {os.path.realpath(program)}
    monkeypatch.setattr("tools.debian_packages.files_of", lambda names: files)
    hidden = entries_to_hide(folder, ["openmpi-bin"])
    assert sorted(entry.name for entry in hidden) == ["mpiexec", "mpirun"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["hide", "solaris", "--", "true"], "solaris is none of the packages"),
        (["hide", "procps"], "name the command after --"),
        (["hide", "procps", "--", "no-such-program"], "cannot start no-such-program"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words, sentence):
    done = subprocess.run(
        [sys.executable, TOOL, *words], capture_output=True, text=True
    )
    if "can't be mounted" in done.stderr or "no mount namespace" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_continuous_integration_tests_the_fresh_machine_first():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    steps = [
        "make lint\n",
        "hide -- make test\n",
        'install "${missing',
        "make test FULL=1\n",
    ]
    places = [text.rindex(step) for step in steps]
    assert places == sorted(places)
