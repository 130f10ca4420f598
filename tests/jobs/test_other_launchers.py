"""job_scripts for Kubernetes, SkyPilot and Ray: their fields, and what torchrun makes
of the variables that each launcher sets."""

import importlib.util
import json
import re
import runpy
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import yaml

from tests.launched import TORCHRUN, finish, free_port, run, start

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "job_scripts"
SCHEMAS = Path(__file__).parent / "schemas"
HELLO = ROOT / "src" / "02_hello_ranks.py"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def manifest(name):
    return yaml.safe_load((SCRIPTS / name).read_text(encoding="utf-8"))


def mistakes(document, schema, where="."):
    """What Kubernetes would refuse: a wrong type, an unknown or a missing field."""
    kind = TYPES.get(schema.get("type", ""))
    if kind and not isinstance(document, kind):
        return [f"{where} is no {schema['type']}"]
    found = []
    if isinstance(document, dict) and "properties" in schema:
        known = schema["properties"]
        required = schema.get("required", [])
        found += [f"{where} lacks {name}" for name in required if name not in document]
        found += [f"{where} has {name}" for name in document if name not in known]
        for name in document.keys() & known.keys():
            found += mistakes(document[name], known[name], f"{where}{name}.")
    if isinstance(document, list) and "items" in schema:
        for number, one in enumerate(document):
            found += mistakes(one, schema["items"], f"{where}{number}.")
    return found


def schema_of(name):
    content = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    assert re.search(r" [0-9a-f]{40} ", content["source"])
    assert content["license"].startswith("Apache-2.0")
    return content


@pytest.mark.parametrize("name", ["jobset", "trainjob"])
def test_manifest_fits_the_schema_of_its_kind(name):
    content, document = schema_of(name), manifest(f"{name}.yaml")
    assert document["apiVersion"] == content["apiVersion"]
    assert mistakes(document, content["schema"]) == []


def test_schema_refuses_what_kubernetes_refuses():
    schema, document = schema_of("trainjob")["schema"], manifest("trainjob.yaml")
    document["spec"]["trainer"]["numNodes"] = "2"
    document["spec"]["trainer"]["gpus"] = 4
    del document["spec"]["runtimeRef"]["name"]
    assert set(mistakes(document, schema)) == {
        ".spec.runtimeRef. lacks name",
        ".spec.trainer. has gpus",
        ".spec.trainer.numNodes. is no integer",
    }


def container(document):
    """The only container of a JobSet's only job."""
    (job,) = document["spec"]["replicatedJobs"]
    (found,) = job["template"]["spec"]["template"]["spec"]["containers"]
    return job, found


def test_numbers_of_a_jobset_agree():
    document = manifest("jobset.yaml")
    job, pod = container(document)
    values = {one["name"]: one.get("value") for one in pod["env"]}
    spec = job["template"]["spec"]
    assert spec["completions"] == spec["parallelism"] == int(values["PET_NNODES"])
    gpus = pod["resources"]["limits"]["nvidia.com/gpu"]
    assert gpus == int(values["PET_NPROC_PER_NODE"])
    name = document["metadata"]["name"]
    assert values["PET_MASTER_ADDR"] == f"{name}-{job['name']}-0-0.{name}"


def variables_of_a_jobset(index):
    _, pod = container(manifest("jobset.yaml"))
    found = {}
    for one in pod["env"]:
        source = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        assert source in (None, INDEX)
        found[one["name"]] = str(index) if source else one["value"]
    return found


def variables_of_a_trainjob(index):
    """As pkg/runtime/framework/plugins/torch/torch.go sets them, at the same commit."""
    document = manifest("trainjob.yaml")
    trainer, name = document["spec"]["trainer"], document["metadata"]["name"]
    return {
        "PET_NNODES": str(trainer["numNodes"]),
        "PET_NPROC_PER_NODE": str(trainer["numProcPerNode"]),
        "PET_NODE_RANK": str(index),
        "PET_MASTER_ADDR": f"{name}-node-0-0.{name}",
        "PET_MASTER_PORT": "29500",
    }


def test_trainjob_sets_no_variable_that_trainer_reserves():
    assert "env" not in manifest("trainjob.yaml")["spec"]["trainer"]


def ranks_said(printed):
    """(rank, local rank, world size) of each line of 02_hello_ranks.py."""
    found = re.findall(r"rank +(\d+) of (\d+).*?local rank (\d+)", printed)
    return sorted((int(rank), int(local), int(size)) for rank, size, local in found)


WORLD = [(0, 0, 4), (1, 1, 4), (2, 0, 4), (3, 1, 4)]


@pytest.mark.parametrize("of", [variables_of_a_jobset, variables_of_a_trainjob])
def test_torchrun_takes_all_its_options_from_the_pod(tmp_path, of):
    """Two pods on this machine, of two ranks each instead of four."""
    port, nodes = str(free_port()), []
    for index in range(2):
        here = {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": port}
        here["PET_NPROC_PER_NODE"] = "2"
        variables = of(index) | here
        nodes.append(start(tmp_path, [*TORCHRUN, HELLO], **variables))
    done = [finish(node) for node in nodes]
    assert [one.returncode for one in done] == [0, 0], done[0].stderr + done[1].stderr
    assert ranks_said("".join(one.stdout for one in done)) == WORLD


# SkyPilot

SKY_FIELDS = {"name", "resources", "num_nodes", "workdir", "setup", "run"}


def test_skypilot_task_has_known_fields_and_valid_bash():
    task = manifest("skypilot.yaml")
    assert set(task) == SKY_FIELDS
    assert task["num_nodes"] == 2 and task["resources"] == {"accelerators": "H100:8"}
    for name in ("setup", "run"):
        subprocess.run(["bash", "-n"], input=task[name], text=True, check=True)


def test_skypilot_runs_torchrun_once_on_each_node(tmp_path):
    """With the variables that its documentation lists for `run`, of two nodes."""
    lines = manifest("skypilot.yaml")["run"]
    lines = lines.replace(".venv/bin/torchrun", '"$TORCHRUN"')
    training = "src/08_multinode_torchrun.py 10 5"
    assert lines.count(training) == 1 and lines.count("29500") == 1
    lines = lines.replace(training, shlex.quote(str(HELLO)))
    lines = lines.replace("29500", str(free_port()))
    torchrun = tmp_path / "torchrun"
    torchrun.write_text(f'#!/bin/sh\nexec {shlex.join(TORCHRUN)} "$@"\n')
    torchrun.chmod(0o755)
    nodes = []
    for rank in range(2):
        sky = {"SKYPILOT_NODE_RANK": str(rank), "SKYPILOT_NUM_NODES": "2"}
        sky["SKYPILOT_NODE_IPS"] = "127.0.0.1\n127.0.0.2"
        sky["SKYPILOT_NUM_GPUS_PER_NODE"] = "2"
        command = ["bash", "-ec", lines]
        nodes.append(start(tmp_path, command, TORCHRUN=str(torchrun), **sky))
    done = [finish(node) for node in nodes]
    assert [one.returncode for one in done] == [0, 0], done[0].stderr + done[1].stderr
    assert ranks_said("".join(one.stdout for one in done)) == WORLD


# Ray

RAY = """
import os, sys
sys.path.insert(0, {source!r})
from common.launchers import get_dist_env
print(get_dist_env())
"""


def test_programs_read_what_ray_train_sets(tmp_path):
    """As ray/train/torch/config.py sets it in the second of two workers of a node."""
    ray = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
    ray |= {"NODE_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    code = RAY.format(source=str(ROOT / "src"))
    done = run(tmp_path, [sys.executable, "-c", code], **ray)
    said = "launcher='by hand', rank=3, local_rank=1, world_size=4, local_world_size=2"
    assert said in done.stdout, done.stderr


WITHOUT_RAY = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason='no Ray: pip install "ray[default,train]"',
)
# Three Ray nodes on this machine, as ray.cluster_utils starts them for Ray's own tests.
RAY_CLUSTER = """
import os, subprocess, sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args=dict(num_cpus=2))
for _ in range(2):
    cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
os.environ["RAY_ADDRESS"] = cluster.address
done = subprocess.run([sys.executable, *sys.argv[1:]])
cluster.shutdown()
sys.exit(done.returncode)
"""


def last_loss_under_ray(folder, *command):
    done = run(folder, [sys.executable, *command], limit=240)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr  # Ray puts a name before a worker's lines
    return float(re.search(r"step 19 \| loss ([\d.]+)", said)[1])


@pytest.mark.full
@WITHOUT_RAY
@pytest.mark.cold("Ray starts its own workers")
def test_ray_trains_in_two_workers_as_in_one(tmp_path):
    script = SCRIPTS / "ray_train.py"
    one = last_loss_under_ray(tmp_path, script, "--workers", 1)
    two = last_loss_under_ray(tmp_path, script, "--workers", 2)
    assert one == pytest.approx(two, rel=1e-4)
    assert one == pytest.approx(LAST_UNDER_RAY, rel=1e-4)


@pytest.mark.full
@WITHOUT_RAY
@pytest.mark.cold("Ray starts its own workers")
def test_ray_trains_on_several_nodes_as_on_one(tmp_path):
    """Four workers: more than any of the three nodes has cores for."""
    cluster = tmp_path / "cluster.py"
    cluster.write_text(RAY_CLUSTER, encoding="utf-8")
    script = SCRIPTS / "ray_train.py"
    loss = last_loss_under_ray(tmp_path, cluster, script, "--workers", 4)
    assert loss == pytest.approx(LAST_UNDER_RAY, rel=1e-4)


# What two workers of Ray 2.60 reported after steps 9 and 10, on a CPU
UNDER_RAY = {9: 0.1664143204689026, 10: 0.11715493351221085}
LAST_UNDER_RAY = 0.007383


def test_one_process_without_ray_trains_as_two_workers_did(monkeypatch, capsys):
    reports = {}
    ray, ray_train = types.ModuleType("ray"), types.ModuleType("ray.train")
    ray.train, ray_train.torch = ray_train, types.ModuleType("ray.train.torch")
    ray_train.report = lambda metrics: reports.update({metrics["step"]: metrics})
    ray_train.torch.get_device = lambda: torch.device("cpu")
    for module in (ray, ray_train, ray_train.torch):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    train = runpy.run_path(str(SCRIPTS / "ray_train.py"))["train"]
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        train({"steps": 20, "batch_size": 64})
    finally:
        dist.destroy_process_group()
    for step, loss in UNDER_RAY.items():
        assert reports[step]["loss"] == pytest.approx(loss, rel=1e-5)
    assert re.search(r"^step 19 \| loss 0\.\d{6}$", capsys.readouterr().out, re.M)
