"""What a machine without the optional Debian packages has; hidden means hidden."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.dependents import files_that_name
from tests.needs import PACKAGE_OF, skip_without
from tools.debian_packages import PACKAGES, entries_to_hide, find
from tools.fresh_copy import ROOT
from workshop.cluster.nodes import machine

TOOL = ROOT / "tools" / "debian_packages.py"
NOTHING_RAN = 5  # pytest's exit status where all tests are deselected
# what else stands for a package in a test
OTHER_NAMES = {"chromium": ("browser",)}
OTHER_NAMES |= {package: ("CLUSTER",) for package in machine.PACKAGES}


# not a fork of the warm server, which sees all of this machine
PYTHON = os.environ.get("WARM_COLD_PYTHON", sys.executable)


def cold_environment():
    """The environment without the session's warm Python."""
    ours = re.compile(r"WARM_|PYTEST_|COLD_PYTHON$|PYTHON_EXEC$")
    kept = {name: text for name, text in os.environ.items() if not ours.match(name)}
    warm = os.environ.get("WARM_PYTHON_BIN")
    folders = kept["PATH"].split(os.pathsep)
    kept["PATH"] = os.pathsep.join(one for one in folders if one != warm)
    return kept


def without(packages, *command):
    """Run a command without packages; skip where nothing can be hidden."""

    def run(*words):
        hidden = [PYTHON, str(TOOL), "hide", *packages, "--", *words]
        return subprocess.run(
            hidden, cwd=ROOT, env=cold_environment(), capture_output=True, text=True
        )

    trial = run("true")
    if trial.returncode == 2:
        pytest.skip(trial.stderr.strip())
    return run(*command)


def programs_found(*packages):
    """Which programs of all packages a command finds that runs without some."""
    names = [program for package in PACKAGES.values() for program in package.programs]
    script = (
        "import os, shutil, sys\n"
        "path = os.environ['PATH'] + ':/usr/sbin'\n"
        "print(*[name for name in sys.argv[1:] if shutil.which(name, path=path)])\n"
    )
    done = without(packages, PYTHON, "-I", "-c", script, *names)
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
        skip_without("ps")
    assert programs_found() == set()
    one = PACKAGE_OF[min(present)]
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
        "make nightly\n",
    ]
    places = [text.rindex(step) for step in steps]
    assert places == sorted(places)


def skips_without(package, junit, *chosen):
    """The reasons of what skips without a package; what depends on it must not fail."""
    names = (*PACKAGES[package].programs, *OTHER_NAMES.get(package, ()))
    files = set(files_that_name(names))
    files -= {ROOT / "tests" / "grader" / "test_known_answers.py", Path(__file__)}
    plugin = ("-p", "tests.dependents", f"--dependents-of={','.join(names)}")
    words = (PYTHON, "-m", "pytest", "-q", f"--junitxml={junit}", *plugin, *chosen)
    done = without([package], *words, *map(str, sorted(files)))
    assert done.returncode in (0, NOTHING_RAN), done.stdout[-3000:]
    cases = ElementTree.parse(junit).iter("testcase")
    return [str(skip.get("message")) for case in cases for skip in case]


@pytest.mark.full
@pytest.mark.parametrize("package", PACKAGES)
def test_without_one_package_what_depends_on_it_skips_and_says_so(package, tmp_path):
    """A machine may have Slurm and no Open MPI: whatever is absent, nothing is red."""
    skip_without(*PACKAGES[package].programs)
    junit = tmp_path / "junit.xml"
    cure = re.compile(rf"sudo apt-get install [^`;]*{re.escape(package)}")
    reasons = skips_without(package, junit, "-m", "quick or not full")
    if not any(map(cure.search, reasons)):  # only tests of `make test FULL=1` need it
        reasons = skips_without(package, junit, "--near")
    assert any(map(cure.search, reasons)), reasons
