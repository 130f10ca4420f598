"""tools/environment.py: finds, creates and repairs .venv.

Each test has a house of its own, whose packages lie beside it: no network is needed.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.grader.unfurnished_house import BACKEND, BASE_PYTHON, PYPROJECT, House, wheel
from tests.launched import wait_until

UV = Path(sys.prefix) / "bin" / "uv"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "house").fill()


@pytest.fixture
def played(house: House) -> House:
    """A house whose .venv is the Python below: enough where nothing is installed."""
    (house.venv / "bin").mkdir(parents=True)
    (house.venv / "bin" / "python").symlink_to(BASE_PYTHON)
    return house


@pytest.fixture(scope="module")
def empty_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip and nothing else: creating one takes seconds."""
    folder = tmp_path_factory.mktemp("empty") / ".venv"
    subprocess.run([BASE_PYTHON, "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def furnished(house: House, empty_venv: Path) -> House:
    """A house with .venv, in which nothing is installed yet."""
    return furnish(house, empty_venv)


def furnish(house: House, venv: Path) -> House:
    shutil.copytree(venv, house.venv, symlinks=True)
    if not UV.exists():
        pytest.skip("this environment was made without uv")
    wheel(house.root / "wheels", "uv", "1", program=UV)
    return house


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, empty_venv: Path) -> House:
    """A house whose environment is complete; tests leave it so."""
    house = furnish(
        House(tmp_path_factory.mktemp("built") / "house").fill(), empty_venv
    )
    done = house.run()
    assert done.returncode == 0, done.stderr + house.log.read_text()
    assert "creating .venv ..." in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Environment ready: Python 3")
    return house


def is_one_sentence(done, *words: str) -> bool:
    """Exit status 2 and one line on stderr that holds all of ``words``."""
    lines = done.stderr.splitlines()
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert len(lines) == 1 and lines[0].startswith("environment: "), lines
    assert all(word in lines[0] for word in words), lines[0]
    return True


# Ready, repaired


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_changed_constraints_are_installed_without_the_network(built):
    built.write("constraints.txt", "brick==2\nuv==1\n# another\n")
    done = built.run(PIP_FIND_LINKS="/nonexistent")
    assert done.returncode == 0, done.stderr
    assert "creating .venv" not in done.stdout
    assert "installing uv" not in done.stdout
    assert '"torch": "0.0"' in built.stamp.read_text()


@pytest.mark.nightly
def test_folder_with_umlauts_is_found_in_any_locale(tmp_path, empty_venv):
    house = furnish(House(tmp_path / "Übung").fill(), empty_venv)
    done = house.run()
    assert done.returncode == 0, done.stderr + house.log.read_text()
    ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found = subprocess.run(
        [house.venv / "bin" / "python", "-c", "import torch; print(torch.__version__)"],
        cwd="/",
        env=ascii_alone,
        capture_output=True,
        text=True,
    )
    assert found.stdout == "0.0\n", found.stderr


@pytest.mark.full
def test_empty_folder_that_a_container_left_is_replaced(house):
    """An engine that runs as root creates it, so that it can't be written to."""
    house.venv.mkdir(mode=0o555)
    before = house.venv.stat().st_ino
    house.run("environment.PIP[:] = ['false']")
    assert house.venv.stat().st_ino != before
    assert (house.venv / "bin" / "python").exists()


def stamp_for_other_packages(house: House) -> None:
    """Let .venv look complete, made before pyproject.toml was changed."""
    house.run(
        "new = environment.wanted() | {'inputs': 'old', 'torch': '1'}\n"
        "environment.STAMP.write_text(environment.json.dumps(new))\nsys.exit()"
    )


@pytest.mark.parametrize(
    "damage",
    [
        "environment.PYTHON.unlink()",
        "environment.STAMP.unlink()  # as an interrupted installation leaves it",
        "environment.STAMP.write_text('{half')",
        "text = environment.STAMP.read_text().replace('house', 'moved')\n"
        "environment.STAMP.write_text(text)",
        "environment.platform.python_version = lambda: '3.99.1'",
        "",
    ],
)
def test_only_a_complete_environment_is_kept(played, damage):
    stamp_for_other_packages(played)
    show = "print(environment.is_ready('inputs')); sys.exit()"
    done = played.run(f"{damage}\n{show}")
    assert done.stdout.strip() == str(not damage), done.stderr


def processes_in(folder: Path) -> list[str]:
    """The living processes that work in a folder or below it."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if Path(os.readlink(link)).is_relative_to(folder):
                found.append(link.parent.joinpath("cmdline").read_text())
    return found


@pytest.mark.nightly
def test_interrupted_installation_is_repaired_by_the_next_run(furnished):
    stamp_for_other_packages(furnished)
    process = furnished.start(SLOW="60")
    while process.poll() is None:
        if furnished.log.exists() and "Building house" in furnished.log.read_text():
            break
        time.sleep(0.05)
    assert processes_in(furnished.root)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does on Ctrl-C
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.split("\n")[1:] == [
        "environment: interrupted; the next run repairs it",
        "",
    ]
    # what was interrupted, too, ends with a traceback
    wait_until(lambda: not processes_in(furnished.root), 60)
    done = furnished.run()
    assert done.returncode == 0, done.stderr
    assert "creating .venv ..." in done.stdout


@pytest.mark.nightly
def test_two_at_once_wait_for_each_other(furnished):
    first, second = furnished.start(SLOW="1"), furnished.start(SLOW="1")
    outputs = [process.communicate(timeout=300)[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0]
    assert sum("importing torch" in out for out in outputs) == 1
    assert all("Environment ready: " in out for out in outputs)


# Where packages come from


@pytest.mark.full
def test_settings_of_pip_are_handed_to_uv(played, empty_venv):
    python = played.venv / "bin" / "python"
    python.unlink()  # Debian's Python has no pip, that of an environment has one
    python.write_text(f'#!/bin/sh\nexec "{empty_venv}/bin/python" "$@"\n')
    python.chmod(0o755)
    played.write(
        "pip.conf",
        "[global]\nindex-url = http://one/simple\nfind-links = /weak\n"
        "[install]\nextra-index-url = http://two\n  http://three\n",
    )
    show = "print(*environment.uv()); sys.exit()"
    pip = {"PIP_CONFIG_FILE": str(played.root / "pip.conf"), "PIP_TRUSTED_HOST": "two"}
    options = played.run(show, **pip, PIP_NO_INDEX="0").stdout.split()
    assert {
        "--default-index=http://one/simple",
        "--index=http://two",
        "--index=http://three",
        f"--find-links={played.root}/wheels",
        "--allow-insecure-host=two",
    } <= set(options)
    assert "--no-index" in played.run(show, **pip).stdout.split()


@pytest.mark.nightly
@pytest.mark.parametrize("chosen", [{}, {"UV_TORCH_BACKEND": "cpu"}], ids=str)
def test_pips_settings_serve_where_pytorchs_index_does_not(furnished, chosen):
    wheel(furnished.root / "wheels", "torch", "7")
    furnished.write("constraints.txt", "brick==2\nuv==1\ntorch==7\n")
    furnished.write("pyproject.toml", PYPROJECT.replace('"brick"', '"brick", "torch"'))
    (furnished.root / "torch.py").unlink()
    (furnished.root / "simple").mkdir()
    backend = BACKEND.replace("brick", "brick\\nRequires-Dist: torch")
    furnished.write("backend.py", backend)
    done = furnished.run(
        PIP_NO_INDEX="0",
        PIP_INDEX_URL=f"file://{furnished.root}/simple",
        HTTPS_PROXY=closed_port(),
        NO_PROXY="",
        **chosen,
    )
    assert done.returncode == 0, done.stderr
    assert "not from PyTorch's own index: everything from where pip" in done.stdout
    assert list(furnished.venv.glob("lib/python*/site-packages/torch-7.dist-info"))


@pytest.mark.nightly
def test_machine_without_uv_is_served_by_pip(house, empty_venv):
    shutil.copytree(empty_venv, house.venv, symlinks=True)
    done = house.run()
    assert done.returncode == 0, done.stderr
    assert "no uv for this machine: pip installs" in done.stdout


def closed_port() -> str:
    """An address at which connections are refused."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


# What a machine can lack: one sentence each

PRINTED = {  # what was seen of uv and pip; a word of the sentence it must get
    "  cause: Connection refused (os error 111)": "index (Connection refused): check",
    "  cause: dns error": "cannot reach the package index (dns error): check",
    "pip._vendor.urllib3.exceptions.ReadTimeoutError: x": "index (ReadTimeout): check",
    "  cause: Because click was not found in the package registry": "has no click for",
    "Because torch==2.13.0 has no wheels with a matching": "has no torch for Python",
    "Because there is no version of brick==3 and": "has no brick for Python",
    "ERROR: No matching distribution found for setuptools>=77": "has no setuptools for",
    "    The user requested (constraint) uv==0.13.9": "has no uv for Python",
    "  cause: No space left on device (os error 28)": "is full",
    "  cause: Permission denied (os error 13)": "cannot write into",
    "AttributeError: module 'numpy' has no attribute 'x'": "'numpy' has no attribute",
}


@pytest.mark.parametrize("printed", PRINTED)
def test_failure_of_a_command_is_explained(house, printed):
    program = f"print({printed!r}); sys.exit(1)"
    command = [sys.executable, "-c", f"import sys; {program}"]
    change = f"environment.build = lambda: environment.run('any', *{command})"
    assert is_one_sentence(house.run(change), PRINTED[printed])


def test_venv_that_fails_as_on_debian_names_the_package(house, tmp_path):
    fake = tmp_path / "python3"
    fake.write_text(
        "#!/bin/sh\necho 'The virtual environment was not created successfully "
        "because ensurepip is not available.'\nexit 1\n"
    )
    fake.chmod(0o755)
    done = house.run(f"sys._base_executable = {str(fake)!r}")
    words = "venv module is missing", "sudo apt-get install python3-venv"
    assert is_one_sentence(done, *words)


@pytest.mark.full
def test_no_network_is_said(house, empty_venv):
    shutil.copytree(empty_venv, house.venv, symlinks=True)
    index = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": closed_port(), "PIP_FIND_LINKS": ""}
    assert is_one_sentence(house.run(**index), "cannot reach the package index")


def test_too_little_free_space_is_said_before_anything_is_done(house):
    done = house.run("environment.NEEDED_GB = 10**9")
    assert is_one_sentence(done, "is full", "make room")
    assert not house.venv.exists()


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of its own, or a skip where mounting is not allowed."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.full
def test_disk_that_is_really_full(tiny_disk):
    house = House(tiny_disk / "house").fill()
    done = house.run("environment.NEEDED_GB = 0")  # let it try
    assert is_one_sentence(done, "is full", "make room")


def test_folder_that_is_really_read_only(tiny_disk):
    house = House(tiny_disk / "house").fill()
    remount = ["mount", "-o", "remount,ro", str(tiny_disk)]
    subprocess.run(remount, check=True)
    done = house.run()
    assert is_one_sentence(done, "cannot write into", "folder of your own")


def test_venv_that_is_a_file_is_not_deleted(house):
    house.venv.write_text("mine")
    assert is_one_sentence(house.run(), "creating .venv failed", "Not a directory")
    assert house.venv.read_text() == "mine"
