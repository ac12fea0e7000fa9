"""A server with faults that a real llama-server does not produce on demand.

Run as `pretender.py MODE ... --port P ...`: it listens like llama-server. loading: 503 forever.
other: ready, with another model. router: ready, as a router. strange: /props is no JSON.
missing: 404 to everything. silent: ready, but never answers a request. dies: aborts at the first
request.
"""

from __future__ import annotations

import sys

print("0.00.000.001 I srv  llama_server: pretending", file=sys.stderr, flush=True)

import os  # noqa: E402 - the line above comes before slow imports
import time  # noqa: E402
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # noqa: E402

MODE, ARGS = sys.argv[1], sys.argv[2:]
PROPS = {
    "other": '{"model_path": "/models/other.gguf"}',
    "router": '{"role": "router", "model_path": "none"}',
    "strange": "<html>",
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if MODE == "missing":
            self.answer(404, "no such page")
        elif MODE == "loading":
            self.answer(503, '{"error": {"message": "Loading model", "code": 503}}')
        else:
            self.answer(200, PROPS.get(MODE, "{}"))

    def do_POST(self) -> None:
        if MODE == "dies":
            print("x.cpp:1: GGML_ASSERT(n_outputs > 0) failed", file=sys.stderr, flush=True)
            os.abort()
        time.sleep(600)

    def answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


port = int(ARGS[ARGS.index("--port") + 1])
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
