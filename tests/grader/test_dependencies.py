"""What constraints.txt pins can be installed, without a compiler, where we say so."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import own_network
from workshop.versions import NEWEST_TRIED_TORCH, OLDEST_TORCH

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UV = Path(sys.prefix) / "bin" / "uv"


@pytest.fixture(scope="module")
def resolve(tmp_path_factory: pytest.TempPathFactory):
    """uv's answer to: which versions for this platform and Python, as wheels?"""
    cache = str(tmp_path_factory.mktemp("cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        environment = importlib.import_module("environment")
    if not UV.exists():
        pytest.skip("this environment was made without uv")
    indexes = environment.settings_of_pip()

    def resolve(platform: str, python: str) -> str:
        target = [f"--python-platform={platform}", f"--python-version={python}"]
        options = ["--quiet", "--all-extras", "--only-binary=:all:", *target]
        given = [*environment.CONSTRAINTS, *indexes, ROOT / "pyproject.toml"]
        done = subprocess.run(
            [UV, "pip", "compile", *options, *given],
            env={
                **os.environ,
                "UV_CACHE_DIR": cache,
                "MACOSX_DEPLOYMENT_TARGET": "14.0",
            },
            capture_output=True,
            text=True,
            preexec_fn=own_network.leave,
        )
        reason = environment.explain(done.stderr or "none")
        if "cannot reach" in reason and "WORKSHOP_CI" not in os.environ:
            pytest.skip(reason)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return resolve


@pytest.mark.nightly
@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize(
    "platform", ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin"]
)
def test_every_python_on_linux_and_macos_has_wheels(resolve, platform, python):
    chosen = resolve(platform, python)
    pins = set(
        re.findall(r"(?m)^torch==[\d.]+$", (ROOT / "constraints.txt").read_text())
    )
    assert pins & set(re.findall(r"(?m)^torch==[\d.]+", chosen))
    assert "darwin" not in platform or "nvidia" not in chosen


def test_set_up_names_the_torch_that_is_installed_and_the_range_that_was_tried():
    page = " ".join((ROOT / "docs" / "setup.rst").read_text().split())
    constraints = (ROOT / "constraints.txt").read_text()
    pinned = re.findall(r"(?m)^torch==(\d+\.\d+)\.", constraints)[0]
    assert f"always PyTorch {pinned}." in page
    assert f"needs PyTorch {OLDEST_TORCH} or newer" in page
    assert f"tried with {OLDEST_TORCH} to {NEWEST_TRIED_TORCH}." in page
    assert PROJECT["optional-dependencies"]["torch"] == [f"torch>={OLDEST_TORCH}"]


def test_light_requirements_are_the_dependencies_and_torch_is_none_of_them():
    lines = (ROOT / "requirements-light.txt").read_text().splitlines()
    light = [line for line in lines if line and not line.startswith("#")]
    assert light == PROJECT["dependencies"]
    assert "torch" not in {re.split(r"\W", need)[0] for need in light}


def test_every_direct_dependency_is_pinned():
    pins = {
        line.split("==")[0]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    listed = re.findall(r'(?m)^ +"([\w-]+)[>=]', (ROOT / "pyproject.toml").read_text())
    assert {"torch", "sphinx", "pyright"} <= set(listed) <= pins
