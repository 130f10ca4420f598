"""Environments with older and newer releases of PyTorch, to try the workshop with.

    python tools/torches.py                 # those of VERSIONS that the index has
    python tools/torches.py 2.8.0 2.14.1    # these
    .workshop/cache/torch/2.8.0/bin/python src/01_single_device.py 10 5

Each is a venv with the packages of pyproject.toml, and PyTorch as the package index has
it. Of older releases that is a build with CUDA (0.5 to 0.9 GB to download), whose
libraries get a stand-in (tools/stand_ins.py). A stamp, written last, says that an
environment is complete; the next time it is used as it is. Exit status: 0 all are
there; 1 some cannot be had, a sentence each; 2 a wrong command line.

WORKSHOP_TORCHES names another folder than .workshop/cache/torch.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PathDistribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for `python tools/torches.py`
from tools import environment, stand_ins  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

# The last release of each series, from the oldest one that a program may run with.
VERSIONS = (
    *("2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1"),
    *("2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1"),
)
FOLDER = Path(os.environ.get("WORKSHOP_TORCHES", ROOT / ".workshop/cache/torch"))
STAMP = "workshop-stamp.json"
CUDA = ("nvidia-", "cuda-", "triton")  # how the packages are called that have a GPU's


class Missing(Exception):
    """One sentence: why there is no environment with this release."""


def python_of(version: str) -> Path:
    """The Python of the environment with this release of PyTorch."""
    return FOLDER / version / "bin" / "python"


def make(version: str) -> Path:
    """Make the environment unless it is there; returns its Python. Or Missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests side by side may want the same
        if not _is_ready(version):
            _build(version)
    return python_of(version)


def _wanted(version: str) -> dict[str, object]:
    return {"torch": version, "light": _light(), "stand_in": stand_ins.EDITION}


def _is_ready(version: str) -> bool:
    try:
        stamp = json.loads((FOLDER / version / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return stamp == _wanted(version)


def _light() -> list[str]:
    """What the workshop needs apart from PyTorch."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    tests = [
        need for need in project["optional-dependencies"]["dev"] if "pytest" in need
    ]
    needs = [*project["dependencies"], *tests]
    return [need for need in needs if Requirement(need).name != "torch"]


def _build(version: str) -> None:
    folder = FOLDER / version
    uv = environment.UV
    if not uv.exists():
        raise Missing(f"no torch {version}: {uv} is missing, `make env` installs it")
    (folder / STAMP).unlink(missing_ok=True)
    _run("venv", "--clear", "--python", sys.executable, str(folder))
    _install(version, "--no-deps", f"torch=={version}")
    (site,) = folder.glob("lib/python*/site-packages")
    (found,) = site.glob("torch-*.dist-info")
    requires = PathDistribution(found).requires or []
    _install(version, *_light(), *_without_cuda(requires))
    stand_ins.install(site / "torch" / "lib")
    code = "import torch; print(torch.ones(2) @ torch.ones(2))"
    done = subprocess.run(
        [python_of(version), "-I", "-c", code], capture_output=True, text=True
    )
    if done.returncode:
        last = f"\n{done.stderr}".rstrip().splitlines()[-1]
        raise Missing(f"no torch {version}: it cannot be imported here ({last})")
    text = json.dumps(_wanted(version), indent=1)
    (folder / STAMP).write_text(text, encoding="utf-8")


def _without_cuda(requires: Sequence[str]) -> list[str]:
    """The packages that PyTorch itself needs on a CPU."""
    needs = [Requirement(text) for text in requires]
    wanted = [
        need
        for need in needs
        if not need.name.startswith(CUDA)
        and (need.marker is None or need.marker.evaluate({"extra": ""}))
    ]
    for need in wanted:
        need.marker = None
    return [str(need) for need in wanted]


def _install(version: str, *what: str) -> None:
    # compiled once: some environments forbid Python to do it at each import
    options = ["--compile-bytecode", "--python", str(python_of(version))]
    options += environment.settings_of_pip()
    _run("pip", "install", *options, *what, about=version)


def _run(*words: str, about: str = "") -> None:
    """Run uv, which prints one sentence more or less when it fails."""
    cache = {"UV_CACHE_DIR": str(environment.STATE / "cache" / "uv")}
    done = subprocess.run(
        [environment.UV, *words],
        env={**cache, **os.environ},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        why = " ".join(environment.explain(done.stderr).split())
        raise Missing(f"no torch {about}: {why}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    status = 0
    for version in parser.parse_args().versions or VERSIONS:
        try:
            print(make(version), flush=True)
        except Missing as error:
            print(f"torches: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
