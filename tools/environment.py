"""Bring .venv into the state it needs; `make` runs this before everything else.

A venv is made, uv installed in it, and by uv the rest, with the build of PyTorch that
suits the machine; what pip's settings name where PyTorch's own index does not serve; by
pip where there is no uv. A stamp, written last, says what .venv holds. Exit status:
0 ready; 2 one sentence says what is missing; 130 interrupted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

ROOT = Path(__file__).resolve().parents[1]
VENV, STATE = ROOT / ".venv", ROOT / ".workshop"
PYTHON, UV, STAMP = VENV / "bin/python", VENV / "bin/uv", VENV / ".workshop-stamp.json"
LOG = STATE / "environment.log"
NEEDED_GB = 3  # of CPU-only PyTorch and the rest, unpacked, with some air
CONSTRAINTS = ["--constraint", f"{ROOT}/constraints.txt"]
WHAT = [*CONSTRAINTS, "--editable", f"{ROOT}[torch,site,dev]"]
# -I: blind to PYTHONPATH and to packages in the user's home
PIP = [str(PYTHON), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
PIP_TO_UV = {"index-url": "default-index", "extra-index-url": "index"}
PIP_TO_UV["trusted-host"] = "allow-insecure-host"
SENTENCES = {  # what a failed command prints: what that means, and the cure
    r"No space left|quota exceeded": f"the disk of {ROOT} is full, the environment "
    f"needs {NEEDED_GB} GB: make room or clone the workshop onto another disk",
    r"Permission denied|Read-only file system": f"cannot write into {ROOT} (FOUND): "
    "clone the workshop into a folder of your own",
    r"ensurepip is not|No module named '?(?:venv|ensurepip)": f"{sys.executable}: its "
    "venv module is missing (Debian and Ubuntu: sudo apt-get install python3-venv)",
    r"dns error|[Nn]ame ?[Rr]esolution|NewConnectionError|ProxyError|ConnectTimeout|"
    r"ReadTimeout|timed out|[Cc]onnection (?:refused|reset)|unreachable|No route to "
    r"host|RemoteDisconnected|IncompleteRead|ProtocolError|certificate verify failed|"
    r"invalid peer certificate|error sending request": "cannot reach the package index "
    "(FOUND): check the network, the proxy (HTTPS_PROXY) and PIP_INDEX_URL",
    r"(?:distribution found for|Because(?: only| there \w+ no versions? of)?|"
    r"\(constraint\)) ([\w.-]+)": "the package index has no FOUND for Python "
    f"{platform.python_version()} on {platform.machine()}: check pip's settings",
}


class Stop(Exception):
    """What a failed command printed, with a last line that says what failed."""


def explain(text: str) -> str:
    """One sentence for a failure, from what was printed."""
    for pattern, sentence in SENTENCES.items():
        if found := re.search(pattern, text):
            return sentence.replace("FOUND", found[found.lastindex or 0])
    return text.splitlines()[-1]


def run(title: str, *command: str | Path, **more: str) -> str:
    """What a command prints, which goes into the log, too. Stop if it fails."""
    print(f"  {title} ...", flush=True)
    caches = {f"{name}_CACHE_DIR": f"{STATE}/cache/{name}" for name in ("PIP", "UV")}
    env = {**caches, **more, **os.environ, "PIP_USER": "0", "PIP_TARGET": ""}
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=PIPE, stderr=STDOUT)
    lines = [b"no output\n"]
    with process, LOG.open("ab", buffering=0) as log:
        try:
            for line in process.stdout or ():
                lines.append(line)
                log.write(line)
                if re.match(rb"\s*Downloading .*(\d\d\S* ?M|G)i?B\)", line):
                    print("   ", line.decode().strip(), flush=True)
        except BaseException:
            process.kill()
            raise
    text = b"".join(lines).decode(errors="replace")
    if status := process.returncode:
        why = f"exit status {status}: {text.splitlines()[-1].strip():.120}"
        raise Stop(f"{text}\n{title} failed ({why}): the full log is {LOG}")
    return text


def stamp() -> dict[str, object]:
    """What .venv holds; nothing where it is not complete."""
    try:
        return dict(json.loads(STAMP.read_text()))
    except (OSError, TypeError, ValueError):
        return {}


def wanted() -> dict[str, object]:
    """What the stamp must say. Scripts in .venv/bin begin with the folder's path."""
    inputs = [(ROOT / name).read_text() for name in ("pyproject.toml", CONSTRAINTS[1])]
    return {"inputs": inputs, "folder": str(ROOT), "python": platform.python_version()}


def is_ready(*ignored: str) -> bool:
    """Whether .venv is what is wanted, apart from what is ignored, and starts."""
    needed = {key: text for key, text in wanted().items() if key not in ignored}
    if not needed.items() <= stamp().items() or not PYTHON.exists():
        return False
    code = "import platform; print(platform.python_version())"
    found = subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, text=True)
    return found.stdout.strip() == needed["python"]


def settings_of_pip() -> list[str]:
    """The indexes that pip uses, as options of uv, which does not read them."""
    command = [*PIP, "config", "list"]  # not logged: it may show passwords
    listed = subprocess.run(command, capture_output=True, text=True).stdout
    named: dict[str, str] = {}
    for section in ("global", "install", ":env:"):  # the later, the stronger
        named |= re.findall(rf"(?m)^{section}\.([\w-]+)=.(.+).$", listed)
    if "proxy" in named:
        os.environ.setdefault("ALL_PROXY", named["proxy"])
    options = ["--index-strategy=unsafe-best-match"]  # as pip: the newest of all
    if named.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        options.append("--no-index")
    for name in ("index-url", "extra-index-url", "find-links", "trusted-host", "cert"):
        for one in named.get(name, "").replace("\\n", " ").split():
            if name != "find-links" or "://" in one or os.path.exists(one):  # as pip
                options.append(f"--{PIP_TO_UV.get(name, name)}={one}")
    return options


def uv(*more: str) -> list[str]:
    """The command of uv that installs everything from where pip's settings say."""
    command = [str(UV), "pip", "install", "--compile-bytecode", f"--python={PYTHON}"]
    command += ["--build-constraints", CONSTRAINTS[1], *settings_of_pip()]
    return [*command, *more, *WHAT]


def succeeds(title: str, *command: str, **more: str) -> bool:
    try:
        return bool(run(title, *command, **more))
    except Stop:
        return False


def installer() -> list[str]:
    """The command that installs everything: the first way on which all is found."""
    soon = ("--retries=1", "--timeout=10", "--only-binary=uv")
    try:
        run("installing uv", *PIP, "install", *soon, *CONSTRAINTS, "uv")
    except Stop as stop:
        if "the package index has no uv" not in explain(str(stop)):
            raise
        print("  no uv for this machine: pip installs")
        return [*PIP, "install", *WHAT]
    # auto: the build for the CPU where there is no GPU, else for the GPU's driver
    suited = uv("--torch-backend=" + os.environ.get("UV_TORCH_BACKEND", "auto"))
    soon_enough = {"UV_HTTP_RETRIES": "1", "UV_HTTP_TIMEOUT": "10"}  # not for minutes
    if succeeds("looking for packages", *suited, "--dry-run", **soon_enough):
        return suited
    print("  not from PyTorch's own index: everything from where pip's settings say")
    os.environ.pop("UV_TORCH_BACKEND", None)  # with it, uv would ask that index again
    return uv()


def find_in_any_locale() -> None:
    """Let .venv find this folder where the locale's encoding is not that of its path.

    What pip and uv leave in .venv names the folder in UTF-8. In another encoding, such
    as Latin-1, Python reads another name there. This line has ASCII alone.
    """
    line = "import os, sys; sys.path.append(os.path.dirname(sys.prefix))\n"
    for packages in VENV.glob("lib/python*/site-packages"):
        (packages / "workshop_in_any_locale.pth").write_text(line)


def build() -> None:
    """Install into .venv, which is made from scratch unless it is complete."""
    keep = is_ready("inputs")
    if not keep:
        if shutil.disk_usage(ROOT).free < NEEDED_GB * 1e9:
            raise Stop("No space left")
        # inside .venv itself, the interpreter to build on is the one below it
        base = getattr(sys, "_base_executable", sys.executable)
        # an engine of containers leaves an empty folder of root, where it had its own
        with contextlib.suppress(OSError):
            VENV.rmdir()
        run("creating .venv", base, "-I", "-m", "venv", "--clear", VENV)
    STAMP.unlink(missing_ok=True)  # interrupted from here on: not complete
    if not (keep and UV.exists() and succeeds("from what is here", *uv("--offline"))):
        title = "installing PyTorch and the tools: some minutes the first time"
        run(title, *installer())
    if not str(ROOT).isascii():
        find_in_any_locale()
    code = "import torch; print(torch.__version__)"
    torch = run("importing torch", PYTHON, "-I", "-c", code).split()[-1]
    STAMP.write_text(json.dumps({**wanted(), "torch": torch}, indent=1))


def main() -> int:
    """Make .venv ready; every failure becomes one sentence and an exit status."""
    try:
        if not is_ready():
            STATE.mkdir(exist_ok=True)
            with (STATE / "environment.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # one `make` at a time changes .venv
                if not is_ready():
                    build()
    except KeyboardInterrupt:
        print("\nenvironment: interrupted; the next run repairs it", file=sys.stderr)
        return 130
    except (Stop, OSError) as error:
        print("environment:", explain(str(error)), file=sys.stderr)
        return 2
    print("Environment ready: Python {python}, torch {torch}".format(**stamp()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
