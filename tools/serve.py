"""Show the built site on this machine only: ``make serve`` or ``serve.py [PORT]``."""

from __future__ import annotations

import functools
import http.server
import sys
from pathlib import Path

PAGES = Path(__file__).resolve().parent.parent / "_build" / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and 404.html for what is not there, as Read the Docs does."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def send_error(self, code, message=None, explain=None) -> None:
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.is_file():
            return super().send_error(code, message, explain)
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def parse_port(text: str) -> int:
    """A port number.

    Raises:
        ValueError: not a number from 1 to 65535.
    """
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise ValueError(f"PORT must be a number from 1 to 65535, not {text!r}")
    return int(text)


def refuse(sentence: str) -> int:
    print(f"serve: {sentence}", file=sys.stderr)
    return 2


def main(arguments: list[str]) -> int:
    given = arguments[0] if arguments else "8000"
    try:
        port = parse_port(given)
    except ValueError as error:
        return refuse(str(error))
    if not (PAGES / "index.html").is_file():
        return refuse("there is no site yet: make site builds it")
    handler = functools.partial(Handler, directory=str(PAGES))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        return refuse(
            f"cannot listen on port {port} ({error.strerror}): "
            f"choose another with make serve PORT={port + 1}"
        )
    print(f"The site is on http://127.0.0.1:{port} (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
