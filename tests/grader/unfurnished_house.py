"""A folder with the tool that makes .venv and a project so small that it takes seconds.

uv or pip installs the project from wheels beside it. Its torch is a stand-in.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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
optional-dependencies = { torch = [], site = [], dev = [] }
"""

# The smallest build backend: an editable wheel that puts this folder on the path, by a
# module that names it in UTF-8, as setuptools does.
BACKEND = """\
import os, time, zipfile

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(folder, config_settings=None, metadata_directory=None):
    time.sleep(float(os.environ.get("SLOW", "0")))
    with zipfile.ZipFile(os.path.join(folder, "house-1-py3-none-any.whl"), "w") as file:
        here = os.path.dirname(os.path.abspath(__file__))
        file.writestr("house.pth", "import finder_of_the_house\\n")
        finder = f"import pathlib, sys\\nhere = {here!r}\\n"
        finder += "if pathlib.Path(here).exists():\\n    sys.path.append(here)\\n"
        file.writestr("finder_of_the_house.py", finder)
        file.writestr("house-1.dist-info/METADATA", METADATA)
        file.writestr("house-1.dist-info/WHEEL", WHEEL)
        file.writestr("house-1.dist-info/RECORD", "")
    return "house-1-py3-none-any.whl"

METADATA = (
    "Metadata-Version: 2.1\\nName: house\\nVersion: 1\\nRequires-Dist: brick\\n"
    "Provides-Extra: torch\\nProvides-Extra: site\\nProvides-Extra: dev\\n"
)
WHEEL = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
"""


def wheel(folder: Path, name: str, version: str, program: Path | None = None) -> None:
    """A wheel with a module, or with a program."""
    info = f"{name}-{version}.dist-info"
    tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        if program:
            file.write(program, f"{name}-{version}.data/scripts/{name}")
        else:
            file.writestr(f"{name}.py", f"__version__ = '{version}'\n")
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        file.writestr(f"{info}/METADATA", head)
        file.writestr(f"{info}/WHEEL", tag)
        file.writestr(f"{info}/RECORD", "")


class House:
    """A folder with the tool, the small project and an index of wheels."""

    def __init__(self, root: Path):
        self.root = root
        self.venv = root / ".venv"
        self.log = root / ".workshop" / "environment.log"
        self.stamp = self.venv / ".workshop-stamp.json"

    def fill(self) -> "House":
        (self.root / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "environment.py", self.root / "tools")
        self.write("pyproject.toml", PYPROJECT)
        self.write("constraints.txt", "brick==2\nuv==1\n")
        self.write("backend.py", BACKEND)
        self.write("torch.py", "__version__ = '0.0'\n")
        (self.root / "wheels").mkdir()
        wheel(self.root / "wheels", "brick", "2")
        return self

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def start(self, change: str = "", **more: str):
        """Run the tool; ``change`` is code that alters the module first."""
        clean = {k: v for k, v in os.environ.items() if k[:3] not in ("PIP", "PYT")}
        offline = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.root / "wheels"),
        }
        tool = ["tools/environment.py"]
        if change:
            first = "import sys; sys.path.insert(0, 'tools'); import environment"
            tool = ["-c", f"{first}\n{change}\nsys.exit(environment.main())"]
        return subprocess.Popen(
            [BASE_PYTHON, *tool],
            cwd=self.root,
            env={**clean, **offline, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, change: str = "", **more: str):
        process = self.start(change, **more)
        try:
            out, err = process.communicate(timeout=300)
        finally:
            process.kill()
        return subprocess.CompletedProcess([], process.returncode, out, err)
