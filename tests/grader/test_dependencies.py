"""What constraints.txt pins can be installed, without a compiler, where we say so."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import own_network

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.mark.full
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


def test_set_up_names_the_only_torch_that_is_installed():
    project, page = ROOT / "pyproject.toml", ROOT / "docs" / "setup.rst"
    oldest, next_one = re.findall(r'"torch>=([\d.]+),<([\d.]+)"', project.read_text())[
        0
    ]
    major, minor = map(int, oldest.split("."))
    assert next_one == f"{major}.{minor + 1}"
    assert f"always PyTorch {oldest}." in page.read_text()


def test_every_direct_dependency_is_pinned():
    pins = {
        line.split("==")[0]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    listed = re.findall(r'(?m)^ +"([\w-]+)[>=]', (ROOT / "pyproject.toml").read_text())
    assert {"torch", "sphinx", "pyright"} <= set(listed) <= pins
