"""Which exercise was saved: by events where there are any, else by looking."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

from workshop.catalog import Exercise


class Files:
    """Says that something was saved, and which exercise.

    watchfiles only wakes the main loop; what changed is found by looking, which
    also works where there are no events (network drives, too many watches).
    """

    def __init__(
        self, folder: Path, catalog: list[Exercise], events: queue.SimpleQueue
    ):
        self.folder, self.catalog, self.events = folder, catalog, events
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._last = self._stats()

    def __enter__(self) -> Files:
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        self._stop.set()
        self._thread.join(2)

    def _listen(self) -> None:
        try:
            from watchfiles import watch

            changes = watch(
                self.folder,
                watch_filter=None,
                debounce=100,
                step=20,
                stop_event=self._stop,
                rust_timeout=200,
                raise_interrupt=False,
                recursive=False,
            )
            for _ in changes:
                self.events.put(("saved", None))
        except Exception:  # no events here: the main loop looks by itself
            return

    def _stats(self) -> dict[str, tuple | None]:
        return {exercise.name: _stat(exercise.path) for exercise in self.catalog}

    def newly_saved(self) -> list[Exercise]:
        """The exercises whose files changed since the last call."""
        before, self._last = self._last, self._stats()
        return [e for e in self.catalog if self._last[e.name] != before[e.name]]

    def forget(self) -> None:
        """Take the files as they are now for known."""
        self._last = self._stats()


def _stat(path: Path) -> tuple | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns
