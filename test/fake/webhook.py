#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A receiver of alerts: webhook.py PORT FILE [stamp] appends what is POSTed, one JSON document a line; with "stamp", the time
of its arrival in seconds and a blank come first."""
import http.server
import sys
import time


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        stamp = f"{time.time():.3f} ".encode() if sys.argv[3:] else b""
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 1 << 20))
        with open(sys.argv[2], "ab") as out:
            out.write(stamp + body.replace(b"\n", b" ") + b"\n")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
