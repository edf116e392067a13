"""OpenMetrics: the last round of a run under way as numbers that Prometheus and its like collect over HTTP."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from feelstream.callbacks.settings import measured
from feelstream.errors import FeelstreamError
from feelstream.run import Run
from feelstream.run.callbacks import Callback, Row
from feelstream.scenario import Scenario

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class OpenMetrics(Callback):
    """Serve http://127.0.0.1:PORT/metrics while a run goes on: a gauge for each column of the rounds table.

    Only this machine can reach it: a collector elsewhere needs a proxy of yours, with whatever rights you give it.
    """

    def __init__(self, port: int = 0) -> None:
        """port: 0 takes a free one, which `port` then tells."""
        self._page = "# EOF\n"
        page = self  # what the handler, which Python makes for each request, looks at

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.split("?")[0] == "/metrics"
                body = page._page.encode() if found else b"see /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: a line for every collection would drown the log of the run."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as problem:
            raise FeelstreamError(f"port {port} of 127.0.0.1 cannot be used for metrics: {problem}") from problem
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def on_start(self, scenario: Scenario, seed: int) -> None:
        self._labels = f'{{policy="{scenario.policy.plugin_name()}",seed="{seed}"}}'

    def on_round(self, row: Row) -> None:
        values = {"round": row["round"], **measured(row)}
        lines = []
        for name, value in values.items():
            lines += [f"# TYPE feelstream_{name} gauge", f"feelstream_{name}{self._labels} {value}"]
        self._page = "\n".join([*lines, "# EOF", ""])

    def on_end(self, run: Run) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
