#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# rates.py FILE: serves /metrics with a sample per line of FILE, "SERIES RATE": a counter that rises by RATE a second, or
# "SERIES =VALUE": a gauge. Prints "listening on http://127.0.0.1:PORT".
import http.server
import sys
import time

START = time.monotonic() - 1000
with open(sys.argv[1], encoding="utf-8") as lines:
    ROWS = [line.rsplit(None, 1) for line in lines if line.strip()]


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        age = time.monotonic() - START
        text = "".join(f"{s} {v[1:] if v[0] == '=' else float(v) * age}\n" for s, v in ROWS).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
