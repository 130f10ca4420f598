"""Both of the machines beside this one: neither changes what the other one does."""

import runpy
from pathlib import Path

for name in ("mac", "many_at_once"):
    runpy.run_path(str(Path(__file__).parents[1] / name / "sitecustomize.py"))
