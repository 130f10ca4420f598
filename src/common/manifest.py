"""The manifest of a run: what happened, one line of JSON for each event.

    manifest = Manifest(folder / "manifest.jsonl")    # continued if it is there
    manifest.add("steps", first=5, losses=[3.9, 3.8])
    log(f"Manifest sealed: {manifest.seal()}")

Each line has the hash of the line before it, a checkpoint those of its files. What is
changed later is noticed, unless everything after it is changed, too.
"""

import hashlib
import json
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from os.path import relpath
from pathlib import Path

from common.distributed import is_rank_0


def _sha256(content: bytes) -> str:
    """As hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def hashes(folder: Path) -> dict[str, list]:
    """Name -> [bytes, SHA-256] of each file of a checkpoint."""
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return {name: [len(text), _sha256(text)] for name, text in found.items()}


class Manifest:
    """Lines of JSON, each with the hash of the line before it; rank 0 writes them."""

    def __init__(self, path: Path):
        self.path, text = path, b""
        if is_rank_0() and path.exists():
            text = path.read_bytes()
            text = text[: text.rfind(b"\n") + 1]  # a lost node may leave half a line
            path.write_bytes(text)
        self.lines = text.splitlines()
        self.hasher = ThreadPoolExecutor(max_workers=1)
        self.hashed: list[tuple[str, Future]] = []  # of checkpoints that have no line

    def add(self, kind: str, **facts: object) -> None:
        """Append what happened."""
        if is_rank_0():
            line = json.dumps({"kind": kind, "previous": self.seal(), **facts}).encode()
            with self.path.open("ab") as file:
                file.write(line + b"\n")
            self.lines.append(line)

    def seal(self) -> str:
        """The hash of the last line, to be printed: no line comes after it."""
        return _sha256(self.lines[-1]) if self.lines else ""

    def add_checkpoints(self, saved: list[Path], wait: bool = False) -> None:
        """Append the checkpoints that are complete now, with their files' hashes.

        A thread of rank 0 reads and hashes them: the others would wait for it in the
        next step. So a line comes later, unless this is to ``wait``.
        """
        while saved:
            path = saved.pop(0)
            if is_rank_0():
                self.hashed.append((path.name, self.hasher.submit(hashes, path)))
        while self.hashed and (wait or self.hashed[0][1].done()):
            name, files = self.hashed.pop(0)
            self.add("checkpoint", name=name, files=files.result())

    @staticmethod
    def code() -> dict[str, str]:
        """Path in src -> SHA-256 of the program that runs, and of what it imports."""
        names = [n for n in sys.modules if n == "__main__" or n.startswith("common.")]
        files = [Path(str(sys.modules[name].__file__)) for name in sorted(names)]
        src = f"{__file__}/../.."
        return {relpath(path, src): _sha256(path.read_bytes()) for path in files}
