"""The image is built and two containers train together; its files are linted always.

The lint takes no time and runs everywhere. The engine takes a minute and the rights
of root, so that it runs only where WORKSHOP_DOCKER=1 asks for it.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.jobs import docker_engine
from workshop.author.answers import read_answers
from workshop.skeleton import with_answers

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "containers" / "Dockerfile"
COMPOSE = ROOT / "containers" / "compose.yaml"
APPTAINER = ROOT / "containers" / "workshop.def"
BIN = Path(sys.executable).parent


def shown(*words) -> str:
    """What a tool says of a file that it finds fault with; "" if it does not."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


# Lint


def hadolint(path) -> str:
    return shown(BIN / "hadolint", "--no-color", path)


def compose_schema(*paths) -> str:
    schema = ("--builtin-schema", "vendor.compose-spec")
    return shown(BIN / "check-jsonschema", *schema, *paths)


def test_dockerfile_is_clean():
    assert hadolint(DOCKERFILE) == ""


def test_hadolint_finds_a_base_without_a_version(tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM python\n")
    assert "DL3006" in hadolint(tmp_path / "Dockerfile")


def test_compose_files_follow_the_schema():
    exercises = [ROOT / name / "11_compose.yaml" for name in ("exercises", "solutions")]
    assert compose_schema(COMPOSE, *filter(Path.exists, exercises)) == ""


def test_schema_finds_a_misspelt_key(tmp_path):
    text = COMPOSE.read_text().replace("shm_size", "shm-size")
    (tmp_path / "compose.yaml").write_text(text)
    assert "shm-size" in compose_schema(tmp_path / "compose.yaml")


def dockerfile_lines(instruction: str) -> list[str]:
    joined = DOCKERFILE.read_text().replace("\\\n", " ")
    return re.findall(rf"^{instruction} +(.*)$", joined, re.MULTILINE)


def test_image_is_of_a_fixed_version_and_runs_as_an_ordinary_user():
    base = dockerfile_lines("ARG")[0]
    assert re.fullmatch(r"BASE=python:3\.\d+\.\d+-\w+-\w+", base)
    assert dockerfile_lines("FROM") == ["${BASE}"]
    assert "--constraint constraints.txt" in dockerfile_lines("RUN")[0]
    assert dockerfile_lines("USER")[-1] not in ("root", "0")


def test_no_container_file_names_a_registry():
    for path in (DOCKERFILE, COMPOSE, APPTAINER):
        images = re.findall(r"(?:BASE=|BASE:-|image: |From: )(\S+)", path.read_text())
        assert images
        assert not [name for name in images if "/" in name], path.name


def test_all_three_files_build_on_the_same_system_and_install_the_same():
    texts = [path.read_text() for path in (DOCKERFILE, COMPOSE, APPTAINER)]
    bases = [re.search(r"BASE(?:=|:-)(python:[\w.-]+)", text)[1] for text in texts]
    assert len(set(bases)) == 1
    packages = "numpy scikit-learn torch tqdm\n"
    assert packages in texts[0] and packages in texts[2]


def test_definition_file_says_that_nobody_has_built_it():
    assert "never built it" in APPTAINER.read_text()


# The engine

ENGINE = pytest.mark.skipif(
    os.environ.get("WORKSHOP_DOCKER") != "1",
    reason="it starts a Docker engine as root: WORKSHOP_DOCKER=1 asks for it",
)


@pytest.fixture(scope="module")
def engine():
    """A Docker engine with the workshop's image, built offline from this machine."""
    if reasons := docker_engine.missing():
        pytest.skip(f"no Docker engine: {'; '.join(reasons)}")
    with docker_engine.DockerEngine() as engine:
        engine.import_base("base")
        build = f"docker build --file {DOCKERFILE} --build-arg BASE=base --tag workshop"
        engine.run(*build.split(), ROOT, timeout=300)
        yield engine


@pytest.fixture(scope="module")
def compose(engine):
    """Run a compose file; returns (output, exit status of each service)."""

    def up(file: Path, **env) -> tuple[str, dict[str, int]]:
        project = f"p{time.monotonic_ns()}"
        words = ("docker-compose", "--file", file, "--project-name", project)
        variables = {"BASE": "base", "EPOCHS": "5", "SAVE_EVERY": "5", **env}
        try:
            output = engine.run(*words, "up", env=variables, timeout=300).stdout
            states = {}
            for service in yaml.safe_load(file.read_text())["services"]:
                # the last word: a network that nobody uses is worth a warning to it
                name = engine.run(*words, "ps", "-q", service).stdout.split()[-1]
                shown = engine.run(
                    "docker", "inspect", "-f", "{{.State.ExitCode}}", name
                )
                states[service] = int(shown.stdout)
        finally:
            engine.run(*words, "down", "--timeout", "1", env=variables)
        return re.sub(r"\x1b\[\d*m", "", output), states

    return up


@ENGINE
def test_image_runs_hello_ranks_as_nobody_special(engine):
    said = engine.run("docker", "run", "--rm", "workshop").stdout
    assert "launcher: torchrun | backend: gloo" in said
    assert "sum of all ranks: 1, expected: 1" in said
    user = engine.run("docker", "run", "--rm", "workshop", "id", "-u").stdout
    assert user.strip() == "1000"


@ENGINE
def test_image_holds_the_scripts_and_nothing_else_of_the_repository(engine):
    listed = engine.run("docker", "run", "--rm", "workshop", "ls", "-A").stdout
    assert listed.split() == ["constraints.txt", "src"]


@ENGINE
def test_two_containers_are_two_nodes(compose):
    output, states = compose(COMPOSE)
    assert states == {"node0": 0, "node1": 0}
    for node, rank in ((0, 0), (0, 1), (1, 2), (1, 3)):
        line = rf"^node{node}.*\[node {node} local {rank % 2} rank {rank}\] Epoch 4"
        assert re.search(line, output, re.MULTILINE), output
    accuracy = float(re.search(r"Test accuracy ([\d.]+)%", output)[1])
    assert accuracy > 85


@ENGINE
def test_shared_memory_of_a_container_is_64_mb_unless_told(engine):
    def size(*options):
        words = ("docker", "run", "--rm", *options, "workshop", "df", "-m", "/dev/shm")
        return int(engine.run(*words).stdout.splitlines()[1].split()[1])

    assert size() == 64
    assert size("--shm-size=1g") == 1024


WORKERS = """
import torch
from torch.utils.data import DataLoader
for _ in DataLoader([torch.zeros(40_000_000)], num_workers=1):  # 160 MB a batch
    print("arrived")
"""


@ENGINE
def test_batch_of_a_worker_must_fit_into_shared_memory(engine):
    def load(*options):
        words = ("docker", "run", "--rm", *options, "workshop", "python", "-c", WORKERS)
        return engine.run(*words, check=False)

    small, large = load(), load("--shm-size=1g")
    assert small.returncode
    for words in ("unable to allocate shared memory(shm)", "No space left on device"):
        assert words in small.stdout
    assert (large.stdout.strip(), large.returncode) == ("arrived", 0)


@ENGINE
def test_container_is_found_by_its_names_on_its_own_networks_alone(engine):
    for network in ("cluster", "storage"):
        engine.run("docker", "network", "create", network)
    node = ("--network=cluster", "--name=node0", "--hostname=head", "--detach")
    engine.run("docker", "run", "--rm", *node, "workshop", "sleep", "300")

    def look(name: str, network: str) -> str:
        code = "import socket, sys; print(socket.gethostbyname(sys.argv[1]))"
        words = ("docker", "run", "--rm", f"--network={network}", "workshop")
        return engine.run(*words, "python", "-c", code, name, check=False).stdout

    try:
        assert look("node0", "cluster") == look("head", "cluster")
        assert look("node0", "cluster").startswith("172.")
        assert "Temporary failure" in look("node0", "storage")
    finally:
        engine.run("docker", "rm", "--force", "node0")
        for network in ("cluster", "storage"):
            engine.run("docker", "network", "rm", network, check=False)


# What the checks of the exercise say on paper, said by real containers
HASTE = "--rdzv-conf=join_timeout=40,read_timeout=40 src/02_hello_ranks.py"


def answer(tmp_path, name: str = "") -> Path:
    """The exercise's file with its solution or a known answer, with short waits."""
    text = (ROOT / "solutions" / "11_compose.yaml").read_text()
    if name:
        known = ROOT / "tests" / "exercises" / "11_compose" / "answers.md"
        codes = {one.name: one.code for one in read_answers(known, "11_compose")}
        text = with_answers(text, codes[name])
    assert "src/08_multinode_torchrun.py 10 5" in text
    file = tmp_path / "compose.yaml"
    file.write_text(text.replace("src/08_multinode_torchrun.py 10 5", HASTE))
    return file


@ENGINE
@pytest.mark.parametrize("name", ["", "static", "hostname"])
def test_right_answer_of_the_exercise_meets(compose, tmp_path, name):
    output, states = compose(answer(tmp_path, name))
    assert set(states.values()) == {0}, output
    assert "sum of all ranks: 6, expected: 6" in output


@ENGINE
@pytest.mark.parametrize(
    "name", ["two_networks", "localhost", "two_ids", "host_network"]
)
def test_wrong_answer_of_the_exercise_never_meets(compose, tmp_path, name):
    output, states = compose(answer(tmp_path, name))
    assert all(states.values()), output
    assert "sum of all ranks" not in output


@ENGINE
def test_engine_leaves_nothing_behind():
    def interfaces():
        return sorted(os.listdir("/sys/class/net"))

    rules = shutil.which("iptables-save", path=docker_engine.PATH)
    before = interfaces(), rules and shown_always(rules)
    forwarding = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    with docker_engine.DockerEngine() as other:
        folder, cgroup = other.folder, other.cgroup
    assert (interfaces(), rules and shown_always(rules)) == before
    assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == forwarding
    assert not folder.exists()
    assert folder.name not in Path("/proc/self/mounts").read_text()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{cgroup}"))


def shown_always(program: str) -> str:
    """The rules of iptables, without the times in its comments."""
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    return "\n".join(line for line in done.stdout.splitlines() if line[:1] != "#")
