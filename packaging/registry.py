"""A registry of npm on this machine, with the packages of a folder: what a user's `npm install` sees once released."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote


@contextlib.contextmanager
def serve(files: list[Path]) -> Iterator[str]:
    """The address of a registry that has these packages and no others."""
    packages: dict[str, tuple[dict[str, Any], bytes]] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = unquote(self.path).lstrip("/")
            host = f"http://{self.headers['host']}"
            if name.startswith("files/"):
                self._send(packages[name.removeprefix("files/")][1])
            elif name in packages:
                self._send(json.dumps(_description(packages[name][0], packages[name][1], host)).encode())
            else:
                self.send_error(404)

        def _send(self, content: bytes) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    for file in files:
        with tarfile.open(file) as tar:
            package = json.load(tar.extractfile("package/package.json"))  # type: ignore[arg-type]
        packages[package["name"]] = (package, file.read_bytes())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _description(package: dict[str, Any], content: bytes, host: str) -> dict[str, Any]:
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    source = {"tarball": f"{host}/files/{package['name']}", "integrity": f"sha512-{digest}"}
    version = package["version"]
    return {
        "name": package["name"],
        "dist-tags": {"latest": version},
        "versions": {version: package | {"dist": source}},
    }
