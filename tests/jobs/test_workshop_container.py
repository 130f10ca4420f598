"""The container of the whole workshop: what its files say, and what an engine does.

What a file says is tested everywhere. WORKSHOP_DOCKER=1 starts a Docker engine, as root
and without a network, so WORKSHOP_IMAGE must name a file with the image:

    docker compose build
    docker save --output workshop.tar distributed-pytorch-workshop
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from tests.jobs import docker_engine

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "containers" / "workshop" / "Dockerfile"
AS_OWNER = ROOT / "containers" / "workshop" / "as_owner.sh"
COMPOSE = ROOT / "compose.yaml"
DEVCONTAINER = ROOT / ".devcontainer" / "devcontainer.json"
CLONE = "/workshop"
BIN = Path(sys.executable).parent


def service(name: str) -> dict:
    return yaml.safe_load(COMPOSE.read_text())["services"][name]


def devcontainer() -> dict:
    """The settings, without the lines that are comments."""
    lines = DEVCONTAINER.read_text().splitlines()
    kept = [line for line in lines if not line.lstrip().startswith("//")]
    return json.loads("\n".join(kept))


# Files


def linted(*words: object) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def test_files_pass_their_linters():
    schema = ("--builtin-schema", "vendor.compose-spec", COMPOSE)
    assert linted(BIN / "check-jsonschema", *schema) == ""
    assert linted(BIN / "hadolint", "--no-color", DOCKERFILE) == ""


def test_nothing_names_an_architecture_or_a_registry():
    for path in (DOCKERFILE, COMPOSE, DEVCONTAINER, AS_OWNER):
        text = path.read_text()
        assert not re.search(r"amd64|x86|aarch64|--platform", text), path.name
    (base,) = re.findall(r"^ARG BASE=(.*)$", DOCKERFILE.read_text(), re.MULTILINE)
    assert re.fullmatch(r"debian:\w+-slim", base)


def test_last_user_of_the_image_is_not_root():
    users = re.findall(r"^USER (.*)$", DOCKERFILE.read_text(), re.MULTILINE)
    assert users[-1:] == ["${UID}"] and "ARG UID=1000" in DOCKERFILE.read_text()


def test_host_environment_is_covered_by_one_of_the_container():
    for name in ("workshop", "cluster"):
        mounted = dict(volume.split(":")[::-1] for volume in service(name)["volumes"])
        assert mounted[CLONE] == "."
        assert (
            mounted[f"{CLONE}/.venv"] in yaml.safe_load(COMPOSE.read_text())["volumes"]
        )
    assert f"WORKDIR {CLONE}\n" in DOCKERFILE.read_text()


def test_shell_of_the_workshop_needs_no_option_that_weakens_the_container():
    assert not {"security_opt", "cap_add", "privileged"} & set(service("workshop"))
    assert not {"cap_add", "privileged"} & set(service("cluster"))


def test_engine_gets_what_the_dockerfiles_copy():
    """A pattern that .dockerignore lacks ends the build."""
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().split()}
    for copy in re.findall(r"^COPY (.*)$", DOCKERFILE.read_text(), re.MULTILINE):
        sources = [word for word in copy.split()[:-1] if not word.startswith("--")]
        assert set(sources) <= allowed, copy
        assert all((ROOT / source).exists() for source in sources)


def test_editor_opens_the_service_of_the_compose_file():
    settings = devcontainer()
    file = (DEVCONTAINER.parent / settings["dockerComposeFile"]).resolve()
    assert file == COMPOSE
    assert service(settings["service"])
    assert settings["workspaceFolder"] == CLONE
    assert settings["remoteUser"] in DOCKERFILE.read_text()


# The user who owns the clone

ENTRY = pytest.mark.skipif(
    os.geteuid() != 0,
    reason="only root can change into the owner of a clone",
)
# /etc of its own, in which the user of the image is 1000, also where that name is taken
OWN_USERS = """
set -e
cp -r /etc "$1/etc"
mount --bind "$1/etc" /etc
sed -i '/^learner:/d' /etc/passwd /etc/group /etc/shadow /etc/gshadow
groupadd --non-unique --gid 1000 learner
useradd --non-unique --uid 1000 --gid 1000 --home-dir "$1" --shell /bin/sh learner
shift
exec "$@"
"""
WHO = "id -u; id -g; touch new && stat --format=%u new; stat --format=%u .venv"


@pytest.fixture
def clone():
    """A folder in which any user may look, as a clone in a container."""
    folder = Path(tempfile.mkdtemp(prefix="clone-"))
    folder.chmod(0o755)
    (folder / "clone" / ".venv").mkdir(parents=True)
    shutil.copy(AS_OWNER, folder)
    yield folder / "clone"
    shutil.rmtree(folder)


def enter(clone: Path, *before: str) -> subprocess.CompletedProcess[str]:
    """Start a container's command in the clone, by what the image starts it with."""
    world = ["unshare", "--mount", "bash", "-c", OWN_USERS, "bash", str(clone.parent)]
    script = str(clone.parent / AS_OWNER.name)
    return subprocess.run(
        [*world, *before, script, "sh", "-c", WHO],
        cwd=clone,
        env={"PATH": docker_engine.PATH, "WORKSHOP_CLONE": str(clone)},
        capture_output=True,
        text=True,
    )


@ENTRY
@pytest.mark.parametrize("owner", [1000, 4321])
def test_shell_belongs_to_the_owner_of_the_clone(clone, owner):
    os.chown(clone, owner, owner)
    done = enter(clone)
    assert done.stdout.split() == [str(owner)] * 4, done.stdout + done.stderr


@ENTRY
def test_clone_that_everyone_may_write_to_is_entered_as_the_user_of_the_image(clone):
    """Docker Desktop is said to show files so; nobody has tried it here."""
    clone.chmod(0o777)
    assert enter(clone).stdout.split() == ["1000", "1000", "1000", "1000"]


@ENTRY
def test_clone_of_root_is_left_to_root(clone):
    """An engine without root's rights calls its own user root."""
    assert enter(clone).stdout.split() == ["0", "0", "0", "0"]


@ENTRY
def test_user_who_cannot_write_is_told_which_one_can(clone):
    os.chown(clone, 4321, 4321)
    done = enter(clone, "setpriv", "--reuid=1000", "--clear-groups")
    assert (done.returncode, done.stdout) == (2, "")
    assert "belongs to 4321:4321: start the container with --user 4321" in done.stderr


# The engine

IMAGE = "distributed-pytorch-workshop"
SAVED = os.environ.get("WORKSHOP_IMAGE", "")
ENGINE = pytest.mark.skipif(
    os.environ.get("WORKSHOP_DOCKER") != "1" or not SAVED,
    reason="it starts a Docker engine as root: WORKSHOP_DOCKER=1 asks for it, and "
    f"WORKSHOP_IMAGE=FILE names what `docker save {IMAGE}` wrote",
)


@pytest.fixture(scope="module")
def engine():
    if reasons := docker_engine.missing():
        pytest.skip(f"no Docker engine: {'; '.join(reasons)}")
    with docker_engine.DockerEngine() as engine:
        engine.run("docker", "load", "--input", SAVED, timeout=600)
        yield engine


@pytest.fixture(scope="module")
def shell(engine, tmp_path_factory):
    """Run a command in a service of compose.yaml, on a clone of another user.

    The options are those of the file. Debian's docker-compose is of version 1, which
    hands systempaths=unconfined to the engine; version 2 and `docker run` don't.
    """
    clone = tmp_path_factory.mktemp("host") / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["chown", "-R", "4321:4321", str(clone)], check=True)

    def run(command: str, name: str = "workshop", *more: str, check: bool = True):
        wanted = service(name)
        words = ["--rm", "--init", f"--user={wanted['user']}"]
        words += [f"--shm-size={wanted['shm_size']}", f"--volume={clone}:{CLONE}"]
        words += [f"--volume=environment:{CLONE}/.venv"]
        for option in wanted.get("security_opt", []):
            words.append(f"--security-opt={option}")
        started = ("docker", "run", *words, *more, IMAGE, "bash", "-c", command)
        return engine.run(*started, check=check, timeout=580).stdout

    return run


@ENGINE
def test_shell_is_an_ordinary_user_and_the_environment_is_ready(shell):
    said = shell("id -u; make env; touch made_here; stat --format=%u made_here")
    lines = said.splitlines()
    assert "4321" in lines and lines[-1] == "4321"
    assert any(line.startswith("Environment ready") for line in lines), said
    assert "creating .venv" not in said


@ENGINE
def test_verdicts_come_without_isolation_and_say_so_once(shell):
    said = shell("workshop check --solutions 02_rank_arithmetic 03_deadlock")
    assert "2 of 2 right" in said
    assert said.count("without isolation") == 1


@ENGINE
def test_doctor_names_what_the_defaults_lack_and_the_option_that_gives_it(shell):
    limits = ("--shm-size=64m", "--memory=2g", "--cpus=1")
    said = re.sub(r"\s*\n[ |]*\|", "", shell("workshop doctor", "workshop", *limits))
    said = re.sub(r"[ |]+", " ", said)
    assert "of 2.1 GB for this container" in said
    assert "1 usable, this container or job may not use all" in said
    assert "--shm-size=1g" in said
    assert "--security-opt seccomp=unconfined" in said
    assert "--security-opt systempaths=unconfined" in said
    assert "--privileged" not in said and "in a container or a" not in said


@ENGINE
def test_cluster_service_isolates_checks_and_submits_jobs(shell):
    said = shell(
        "workshop check --solutions 02_rank_arithmetic 09_dead_task && "
        "workshop cluster up && workshop cluster run sinfo; workshop cluster down",
        "cluster",
    )
    assert "2 of 2 right" in said
    assert "without isolation" not in said and "not checked" not in said


@ENGINE
def test_tour_and_mpi_work_with_the_defaults(shell):
    said = shell("make tour && mpirun -n 2 python src/02_hello_ranks.py")
    assert "The same training, compared" in said
    assert "launcher: " in said and "sum of all ranks: 1, expected: 1" in said
