"""tools/environment.py: creates, repairs and finds .venv, without the network.

Each test has a house of its own: a folder with the tool and a project so small that
pip installs it from two wheels beside it. Its only package is a stand-in for torch.
"""

import ast
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "environment.py"
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "house"
version = "1"
dependencies = ["brick"]

[project.optional-dependencies]
site = []
dev = []
"""

# The smallest build backend: an editable wheel that puts this folder on the path.
BACKEND = """\
import os, time, zipfile

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(folder, config_settings=None, metadata_directory=None):
    time.sleep(float(os.environ.get("SLOW", "0")))
    if os.environ.get("DISK_IS_FULL"):
        raise OSError(28, "No space left on device")
    name = "house-1-py3-none-any.whl"
    info = "house-1.dist-info/"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("house.pth", os.path.dirname(os.path.abspath(__file__)))
        wheel.writestr(info + "METADATA", METADATA)
        wheel.writestr(info + "WHEEL", WHEEL)
        wheel.writestr(info + "RECORD", "")
    return name

METADATA = (
    "Metadata-Version: 2.1\\nName: house\\nVersion: 1\\nRequires-Dist: brick\\n"
    "Provides-Extra: site\\nProvides-Extra: dev\\n"
)
WHEEL = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
"""


def wheel(folder: Path, name: str) -> None:
    """An empty package as a wheel."""
    info = f"{name}-99.dist-info/"
    with zipfile.ZipFile(folder / f"{name}-99-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", "")
        file.writestr(
            info + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 99\n"
        )
        file.writestr(
            info + "WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr(info + "RECORD", "")


class House:
    """A folder with the tool, the small project and an index of wheels."""

    def __init__(self, root: Path):
        self.root = root
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"
        self.log = root / ".workshop" / "environment.log"
        (root / "tools").mkdir(parents=True)
        shutil.copy(TOOL, root / "tools")
        (root / "pyproject.toml").write_text(PYPROJECT)
        (root / "constraints.txt").write_text("setuptools==99\n")
        (root / "backend.py").write_text(BACKEND)
        (root / "torch.py").write_text("__version__ = '0.0'\n")
        wheels = root / "wheels"
        wheels.mkdir()
        wheel(wheels, "setuptools")
        wheel(wheels, "brick")

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON"))
        }
        offline = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.root / "wheels"),
        }
        return {**kept, **offline, **more}

    def start(self, setup: str = "", **more: str) -> "subprocess.Popen[str]":
        """Run the tool; ``setup`` is code that alters its module first."""
        code = textwrap.dedent(
            """
            import importlib.util, sys
            spec = importlib.util.spec_from_file_location("environment", sys.argv[1])
            tool = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(tool)
            {setup}
            sys.exit(tool.guarded())
            """
        ).format(setup=setup)
        path = self.root / "tools" / "environment.py"
        return subprocess.Popen(
            [BASE_PYTHON, "-c", code, str(path)],
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, setup: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(setup, **more)
        try:
            out, err = process.communicate(timeout=300)
        finally:
            process.kill()
        return subprocess.CompletedProcess([], process.returncode, out, err)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "house")


@pytest.fixture(scope="module")
def empty_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip and nothing else: creating one takes seconds."""
    folder = tmp_path_factory.mktemp("empty") / ".venv"
    subprocess.run([BASE_PYTHON, "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def furnished(house: House, empty_venv: Path) -> House:
    """A house with .venv, in which nothing is installed yet."""
    shutil.copytree(empty_venv, house.venv, symlinks=True)
    return house


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A house whose environment is complete; tests leave it so."""
    house = House(tmp_path_factory.mktemp("built") / "house")
    done = house.run()
    assert done.returncode == 0, done.stderr + house.log.read_text()
    assert "Environment ready after" in done.stdout
    return house


def is_one_sentence(done, *words: str) -> bool:
    """Exit status 2 and one line on stderr that holds all of ``words``."""
    lines = done.stderr.splitlines()
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert len(lines) == 1 and lines[0].startswith("environment: "), lines
    assert all(word in lines[0] for word in words), lines[0]
    return True


# Ready, repaired


def test_each_step_is_announced_and_timed(built):
    done = built.run("tool.read_stamp = lambda: {}")
    for step in ("looking at what is installed", "importing torch"):
        assert f"{step} ..." in done.stdout
        assert f"{step}: done after" in done.stdout


def test_second_run_installs_nothing_and_needs_no_pip(built):
    before = built.log.stat().st_mtime_ns
    (package,) = built.venv.glob("lib/python*/site-packages/pip")
    package.rename(package.with_name("hidden"))
    try:
        done = built.run()
    finally:
        package.with_name("hidden").rename(package)
    assert done.returncode == 0
    assert done.stdout.startswith("Environment ready: Python 3")
    assert len(done.stdout.splitlines()) == 1
    assert built.log.stat().st_mtime_ns == before


def test_changed_constraints_are_installed_without_the_network(built):
    (built.root / "constraints.txt").write_text("setuptools==99\n# another\n")
    done = built.run(PIP_FIND_LINKS="/nonexistent")
    assert done.returncode == 0, done.stderr
    assert "complete" in done.stdout
    assert "creating .venv" not in done.stdout


def test_environment_that_does_not_start_is_made_anew(built):
    built.python.unlink()
    done = built.run()
    assert done.returncode == 0, done.stderr
    assert "creating .venv anew (the old one does not start)" in done.stdout


def test_damaged_stamp_is_no_obstacle(built):
    (built.venv / ".workshop-stamp.json").write_text("{half")
    done = built.run()
    assert done.returncode == 0, done.stderr
    assert (
        json.loads((built.venv / ".workshop-stamp.json").read_text())["torch"] == "0.0"
    )


def test_moved_folder_gets_a_new_environment(built, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(built.root, moved, symlinks=True)
    (moved / ".venv" / "made-elsewhere").touch()
    house = object.__new__(House)
    house.__dict__.update(root=moved, venv=moved / ".venv", python=None, log=None)
    done = house.run()
    assert done.returncode == 0, done.stderr
    assert "the folder was moved or copied" in done.stdout
    assert not (moved / ".venv" / "made-elsewhere").exists()


def test_interrupted_installation_is_repaired_by_the_next_run(furnished):
    process = furnished.start(SLOW="60")
    while process.poll() is None:
        if furnished.log.exists() and "Preparing" in furnished.log.read_text():
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does on Ctrl-C
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "interrupted; the next run repairs" in err
    assert "Traceback" not in err
    done = furnished.run()
    assert done.returncode == 0, done.stderr
    assert "its installation was interrupted" in done.stdout


def test_two_at_once_wait_for_each_other(furnished):
    first, second = furnished.start(SLOW="1"), furnished.start(SLOW="1")
    outputs = [process.communicate(timeout=300)[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0]
    waited = [out for out in outputs if "waiting for it to finish" in out]
    assert len(waited) == 1
    assert "importing torch" not in waited[0]
    assert "Environment ready: " in waited[0]


def test_folder_that_another_command_makes_at_this_moment_is_no_error(house):
    """As it may be when two begin at once."""
    done = house.run(
        "make = tool.os.makedirs; tool.main = tool.check_folder; tool.os.makedirs = "
        "lambda path, **more: (tool.os.mkdir(path), make(path, **more))"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert house.log.parent.is_dir()


# What a machine can lack: one sentence each

OLD_PYTHON = (
    "tool.sys.version_info = (3, 9, 2);tool.platform.python_version = lambda: '3.9.2'"
)


def test_old_python_is_told_which_newer_one_is_there(house):
    newer = "tool.run_quietly = lambda command: command[0] != 'python3.11'"
    done = house.run(f"{OLD_PYTHON}; {newer}")
    assert is_one_sentence(
        done, "3.9.2", "3.10 or newer", "make PYTHON=python3.11 tour"
    )
    assert not house.venv.exists()


def test_old_python_may_use_an_environment_that_is_ready(built):
    done = built.run(OLD_PYTHON)
    assert (done.returncode, done.stderr) == (0, "")


def test_syntax_is_older_than_the_pythons_it_refuses():
    tree = ast.parse(TOOL.read_text(encoding="utf-8"), feature_version=(3, 4))
    new = (
        ast.JoinedStr,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.AsyncFunctionDef,
        ast.YieldFrom,
    )
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        assert not isinstance(node, new), f"line {line}: {type(node).__name__}"
        if isinstance(node, ast.Raise):
            assert node.cause is None, f"line {line}: raise ... from"
        if isinstance(node, ast.arguments):
            assert not node.kwonlyargs and not node.posonlyargs
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None, f"line {line}: a type of the result"
        if isinstance(node, ast.arg):
            assert node.annotation is None, f"line {line}: a type of an argument"


def old_pythons() -> list[str]:
    """Pythons before 3.10 on PATH or kept by pyenv."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [str(path) for path in kept.glob("[23].*/bin/python")]
    found += filter(None, map(shutil.which, ("python2", "python3.8", "python3.9")))
    code = "import sys; sys.exit(not (2, 7) <= sys.version_info < (3, 10))"
    return [
        python
        for python in found
        if subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    ]


def test_really_old_pythons_get_the_sentence(house):
    pythons = old_pythons()
    if not pythons:
        pytest.skip("there is no Python older than 3.10 on this machine")
    for python in pythons:
        done = subprocess.run(
            [python, str(house.root / "tools" / "environment.py")],
            capture_output=True,
            text=True,
        )
        assert is_one_sentence(done, "3.10 or newer", "make PYTHON=")


def test_missing_venv_module_names_the_debian_package(house):
    done = house.run('sys.modules["ensurepip"] = None')
    assert is_one_sentence(done, "venv module is missing")
    assert (
        shutil.which("apt-get") is None or "apt-get install python3-venv" in done.stderr
    )


def test_venv_that_fails_as_on_debian_names_the_package(house, tmp_path):
    fake = tmp_path / "python3"
    fake.write_text(
        "#!/bin/sh\necho 'The virtual environment was not created successfully "
        "because ensurepip is not available.'\nexit 1\n"
    )
    fake.chmod(0o755)
    done = house.run(f"sys._base_executable = {str(fake)!r}")
    assert is_one_sentence(done, "venv module is missing")


def test_no_network_is_said(furnished):
    with socket.socket() as closed:  # bound, not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        done = furnished.run(PIP_NO_INDEX="0", PIP_INDEX_URL=address, PIP_FIND_LINKS="")
    assert is_one_sentence(done, "cannot reach the package index", "PIP_INDEX_URL")


def test_index_that_never_answers_is_given_up(furnished):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        done = furnished.run(
            "tool.ANSWER_LIMIT = 2",
            PIP_NO_INDEX="0",
            PIP_INDEX_URL=address,
            PIP_FIND_LINKS="",
        )
    assert is_one_sentence(done, "no answer within 2 s")


def test_index_without_the_packages_is_named(furnished):
    done = furnished.run(PIP_FIND_LINKS=str(furnished.root))
    assert is_one_sentence(done, "the package index has no setuptools", "PIP_NO_INDEX")


def test_too_little_free_space_is_said_before_anything_is_done(house):
    done = house.run("tool.NEEDED_BYTES = 10**18")
    assert is_one_sentence(done, "is full", "make room")
    assert not house.venv.exists()


def test_disk_that_fills_up_while_pip_runs(furnished):
    done = furnished.run(DISK_IS_FULL="1")
    assert is_one_sentence(done, "is full", "make room")


def mounted(folder: Path, options: str) -> None:
    """Mount a tiny file system, or skip where that is not allowed."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip("mounting a file system needs root")


@pytest.fixture
def tiny_disk(tmp_path):
    folder = tmp_path / "tiny"
    mounted(folder, "size=4m")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_disk_that_is_really_full(tiny_disk):
    house = House(tiny_disk / "house")
    done = house.run("tool.NEEDED_BYTES = 0")  # let it try
    assert is_one_sentence(done, "is full", "make room")


def test_folder_that_is_really_read_only(tiny_disk):
    house = House(tiny_disk / "house")
    remount = ["mount", "-o", "remount,ro", str(tiny_disk)]
    subprocess.run(remount, check=True)
    done = house.run()
    assert is_one_sentence(done, "cannot write into", "folder of your own")


def test_venv_that_is_a_file_is_not_deleted(house):
    house.venv.write_text("mine")
    done = house.run()
    assert is_one_sentence(done, ".venv is a file")
    assert house.venv.read_text() == "mine"


def test_broken_torch_is_named(furnished):
    (furnished.root / "torch.py").write_text(
        "raise ImportError('libgomp.so.1 is missing')\n"
    )
    done = furnished.run()
    assert is_one_sentence(done, "import torch failed", "libgomp.so.1 is missing")


# The pins


def test_every_direct_dependency_is_pinned():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = {line.split("==")[0] for line in text.splitlines() if "==" in line}
    if sys.version_info < (3, 11):
        pytest.skip("reading pyproject.toml here needs Python 3.11")
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(name for extra in extras for name in extra)]
    names = {requirement.split(">")[0].split("=")[0].strip() for requirement in wanted}
    assert names - pins == set()
