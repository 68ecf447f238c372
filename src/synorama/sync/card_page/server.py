"""The clock card for this computer's own browser."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from synorama.errors import UsageError
from synorama.sync.card_page import card_page

__all__ = ["card_server"]

LOOPBACK = "127.0.0.1"


def card_server(port: int) -> ThreadingHTTPServer:
    """Return a server of the one page, bound to this computer alone; port 0 for any free one.

    Raises
    ------
    UsageError
        The port is taken or not allowed.
    """
    try:
        return ThreadingHTTPServer((LOOPBACK, port), _Page)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"port {port} cannot be used: {error}", hint="give another one with --port"
        ) from error


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = card_page().encode() if self.path == "/" else b""
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
