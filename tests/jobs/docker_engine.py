"""A Docker engine that leaves nothing behind, and a base image made of this machine.

``with DockerEngine() as engine`` starts ``dockerd`` in a network, mount and process
namespace of its own: its bridge, its iptables rules, its containers and its mounts
are gone when its first process is. It has no network but its own, so that what a
test builds on is imported before: this machine's Python with the packages that the
Dockerfile asks for, which pip then finds to be there already.
"""

import importlib.metadata
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from pathlib import Path

PROGRAMS = {"docker.io": ("dockerd", "docker"), "docker-compose": ("docker-compose",)}
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
# What the Dockerfile calls, and what a shell in a container needs.
TOOLS = ["sh", "bash", "env", "chown", "chmod", "mkdir", "ls", "cat", "id", "df"]
TOOLS += ["hostname", "sleep", "useradd"]
PACKAGES = ("numpy", "scikit-learn", "torch", "tqdm", "pip")
COMMANDS = {"torchrun": "torch.distributed.run", "pip": "pip"}
SCRIPT = '#!/bin/sh\nexec python -m {module} "$@"\n'


def missing() -> list[str]:
    """Why no Docker engine can be started here, with the cure; empty: it can."""
    if os.geteuid() != 0:
        return ["a Docker engine is started by root alone"]
    absent = {
        package: names
        for package, programs in PROGRAMS.items()
        if (names := [name for name in programs if not shutil.which(name, path=PATH)])
    }
    if absent:
        names = ", ".join(name for names in absent.values() for name in names)
        return [
            f"this machine has no {names}: sudo apt-get install "
            f"--no-install-recommends {' '.join(absent)}"
        ]
    return []


class EngineFailed(AssertionError):
    """The engine did not start; the text is the end of its log."""


class DockerEngine:
    """One ``dockerd``, its socket and its files in a folder that goes with it."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="docker-", dir="/tmp"))
        self.socket = self.folder / "docker.sock"
        self.cgroup = self.folder.name
        self._process: subprocess.Popen | None = None

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        here = self.folder
        daemon = [
            *("dockerd", "--oom-score-adjust=0", f"--cgroup-parent=/{self.cgroup}"),
            *(f"--data-root={here}/data", f"--exec-root={here}/exec"),
            *(f"--pidfile={here}/pid", f"--host=unix://{self.socket}"),
            # Nobody answers there: no look-up waits for a server that is not there.
            *("--dns=127.0.0.1", "--dns-opt=timeout:1", "--dns-opt=attempts:1"),
        ]
        unshare = ["unshare", "--net", "--mount", "--pid", "--fork"]
        unshare += ["--kill-child", "--mount-proc"]
        shell = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        with open(here / "log", "wb") as log:
            self._process = subprocess.Popen(
                [*unshare, *shell, *daemon],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PATH": PATH},
                start_new_session=True,
            )
        end = time.monotonic() + 60
        while self.run("docker", "version", check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > end:
                raise EngineFailed((here / "log").read_text()[-2000:])
            time.sleep(0.2)

    def __exit__(self, *exception) -> None:
        if self._process is not None:
            self._process.kill()  # and with it, its PID 1 and all that is below
            self._process.wait()
        self._remove_cgroups()
        for _ in range(50):  # its mounts go a moment after its last process
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                break
            time.sleep(0.1)

    def _remove_cgroups(self) -> None:
        for parent in Path("/sys/fs/cgroup").glob(f"*/{self.cgroup}"):
            for folder in sorted([parent, *parent.glob("**/")], reverse=True):
                for _ in range(20):
                    if not folder.exists():
                        break
                    try:
                        folder.rmdir()
                    except OSError:  # its last process is just ending
                        time.sleep(0.1)

    def run(self, *words, check=True, timeout=120, cwd=None, env=None):
        """A command that talks to this engine; its output, errors included."""
        variables = {k: v for k, v in os.environ.items() if not k.startswith("DOCKER")}
        variables |= {"PATH": PATH, "DOCKER_HOST": f"unix://{self.socket}"}
        done = subprocess.run(
            [*map(str, words)],
            cwd=cwd,
            env={**variables, "DOCKER_BUILDKIT": "0", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        if check:
            assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}"
        return done

    def import_base(self, name: str) -> None:
        """Make the image ``name``: this machine's Python, a shell, a few tools."""
        process = subprocess.Popen(
            ["docker", "import", "--change", "ENV PYTHONPATH=/opt/packages", "-", name],
            env={**os.environ, "PATH": PATH, "DOCKER_HOST": f"unix://{self.socket}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        with process.stdin, tarfile.open(fileobj=process.stdin, mode="w|") as tar:
            BaseImage(tar).write()
        assert process.wait() == 0


class BaseImage:
    """Writes the root file system of a small Linux with Python into a tar stream."""

    def __init__(self, tar: tarfile.TarFile):
        self.tar = tar
        self.written: set[str] = set()

    def write(self) -> None:
        for folder in ("tmp", "etc", "home", "root", "proc", "sys", "dev"):
            self._folder(folder)
        for name in ("bin", "sbin", "lib", "lib64"):  # of /usr, as on this machine
            if os.path.islink(f"/{name}"):
                self._link(name, os.readlink(f"/{name}"))
        for path in ("/etc/login.defs", "/etc/nsswitch.conf", "/etc/default/useradd"):
            if os.path.exists(path):
                self.add(path, False)
        self._text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
        self._text("etc/group", "root:x:0:\n")
        self._text("etc/shadow", "root:*:19000:0:99999:7:::\n")
        for program in filter(None, (shutil.which(t, path=PATH) for t in TOOLS)):
            self.add(program)
        for name in ("libnss_files.so.2", "libnss_dns.so.2"):
            for path in Path("/usr/lib").glob(f"*/{name}"):
                self.add(str(path))
        self._python()
        self._packages()

    def _python(self) -> None:
        """The interpreter behind .venv, with its own library, at its own place."""
        # not sys.executable, which may be the warm one of the tests
        own = f"python{sys.version_info.major}.{sys.version_info.minor}"
        program = os.path.realpath(f"{sys.base_prefix}/bin/{own}")
        self.add(program)
        self._link("usr/local/bin/python", program)
        library = sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix})
        # pip would refuse to look at a Python that belongs to Debian
        unwanted = {"site-packages", "dist-packages", "test", "EXTERNALLY-MANAGED"}
        for path in sorted(Path(library).rglob("*")):
            if path.is_file() and not unwanted & set(path.relative_to(library).parts):
                self.add(str(path), path.suffix == ".so")

    def _packages(self) -> None:
        compiled = []
        for name in sorted(distributions(PACKAGES)):
            for file in importlib.metadata.distribution(name).files or []:
                path = Path(str(file.locate()))
                unwanted = {"..", "__pycache__", "include", "tests"} & set(file.parts)
                if path.is_file() and not unwanted:
                    self._file(f"opt/packages/{file}", path)
                    compiled += [str(path)] if ".so" in file.name else []
        for library in sorted(libraries(*compiled)):
            if "/site-packages/" not in library:
                self.add(library, False)
        for command, module in COMMANDS.items():
            self._text(f"usr/local/bin/{command}", SCRIPT.format(module=module), 0o755)

    def add(self, path: str, with_libraries: bool = True) -> None:
        """A file of this machine at its own place, and the libraries it is bound to."""
        folder, name = os.path.split(path)  # /lib may be a link to /usr/lib
        path = os.path.join(os.path.realpath(folder), name)
        if path in self.written:
            return
        self.written.add(path)
        if os.path.islink(path):
            self._link(path.lstrip("/"), os.readlink(path))
            self.add(os.path.realpath(path), with_libraries)
            return
        self._file(path.lstrip("/"), Path(path))
        if with_libraries:
            for library in sorted(libraries(path)):
                self.add(library, False)

    def _file(self, name: str, path: Path) -> None:
        info = self.tar.gettarinfo(str(path), name)
        info.uid = info.gid = 0
        if not info.isreg():  # a hard link to a file that has another name here
            info.type, info.size = tarfile.REGTYPE, path.stat().st_size
        with path.open("rb") as content:
            self.tar.addfile(info, content)

    def _folder(self, name: str) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
        self.tar.addfile(info)

    def _link(self, name: str, target: str) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = tarfile.SYMTYPE, target
        self.tar.addfile(info)

    def _text(self, name: str, text: str, mode: int = 0o644) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(text), mode
        self.tar.addfile(info, io.BytesIO(text.encode()))


def libraries(*paths: str) -> set[str]:
    """The shared libraries that these files are bound to, the dynamic linker, too."""
    done = subprocess.run(["ldd", *paths], capture_output=True, text=True)
    return set(re.findall(r"(?:=> |^\s*)(/\S+) \(0x", done.stdout, re.MULTILINE))


def distributions(names) -> set[str]:
    """These packages and all that they need, as they are installed here."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system or Python
        found.add(name)
        wanted = [need for need in needs if "extra ==" not in need]
        todo += [re.split(r"[^\w.-]", need, maxsplit=1)[0].lower() for need in wanted]
    return found
