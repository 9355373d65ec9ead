# SPDX-License-Identifier: Apache-2.0
"""The pods of a Deployment at work, for run-victims: makes them ready, gives each a load or streams, serves the loads to
Prometheus, and compares what a scale-down removed with what it should have removed.

  streams.py choose RUNS    ten pods with random loads, three are to go: prints how often the three least loaded went
  streams.py drain STREAMS  a router gives streams to pods without a mark, while the scale goes up and down: prints how
                            many of them were cut
  streams.py serve FILE     serves the loads of FILE ("WANT" in the first line, then one load for all pods)

Environment: API (URL), API_CA, PORT (to serve metrics on), PROMETHEUS (URL), NAMESPACE, APP."""
import http.server
import json
import os
import random
import ssl
import sys
import threading
import time
import urllib.parse
import urllib.request

API, PORT, PROMETHEUS = os.environ["API"], int(os.environ["PORT"]), os.environ["PROMETHEUS"]
PODS = f"/api/v1/namespaces/{os.environ['NAMESPACE']}/pods"
APP = os.environ["APP"]
MARK = "gpuscale.dev/victim"
PATIENCE_S = 120
TLS = ssl.create_default_context(cafile=os.environ["API_CA"])
lock = threading.Lock()
want, loads = 10, {}


def request(path, body=None):
    kind = {"Content-Type": "application/strategic-merge-patch+json"} if body else {}
    call = urllib.request.Request(API + path, data=json.dumps(body).encode() if body else None,
                                  headers={"Authorization": "Bearer admin-token", **kind}, method="PATCH" if body else "GET")
    with urllib.request.urlopen(call, timeout=30, context=TLS) as reply:
        return json.load(reply)


def pods():
    """Returns the pods that are not being deleted, by name, and makes new ones ready."""
    items = request(f"{PODS}?labelSelector=app%3D{APP}")["items"]
    for pod in items:
        if pod["status"].get("phase") == "Running":
            continue
        try:
            request(f"{PODS}/{pod['metadata']['name']}/status",
                    {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        except OSError:
            pass  # it has been deleted
    return {p["metadata"]["name"]: p for p in items if "deletionTimestamp" not in p["metadata"]}


def value(query):
    url = f"{PROMETHEUS}/api/v1/query?query={urllib.parse.quote(query)}"
    with urllib.request.urlopen(url, timeout=30) as reply:
        result = json.load(reply)["data"]["result"]
    return {s["metric"].get("pod", ""): float(s["value"][1]) for s in result}


def until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"never: {what}")
        time.sleep(0.05)


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802
        with lock:
            text = f"want {want}\n" + "".join(f'load{{pod="{p}"}} {v}\n' for p, v in loads.items())
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())
        except OSError:
            pass  # the scrape took too long

    def log_message(self, *_):
        pass


def set_want(n, new_loads=None):
    global want, loads
    with lock:
        want = n
        loads = loads if new_loads is None else new_loads


def choose(runs):
    right = 0
    for _ in range(runs):
        set_want(10)
        until("ten pods", lambda: len(pods()) == 10)
        until("ten ready pods", lambda: all(p["status"].get("phase") == "Running" for p in pods().values()))
        now = pods()
        numbers = random.sample(range(1, 1000), 10)
        chosen = dict(zip(now, numbers))
        set_want(10, chosen)
        until("Prometheus has the loads", lambda: value("load") == chosen)
        set_want(7)
        until("seven pods", lambda: len(pods()) <= 7)
        gone = set(now) - set(pods())
        right += gone == set(sorted(now, key=chosen.get)[:3])
    print(f"{right} of {runs}")


def drain(total):
    streams, started, cut, done = {}, 0, 0, 0  # id -> (pod, end)
    turn_at = time.monotonic()
    until("ten pods", lambda: len(pods()) == 10)
    while done + cut < total:
        now, alive = time.monotonic(), pods()
        if now >= turn_at:
            set_want(16 - want)  # 10, 6, 10, ..
            turn_at = now + 6
        for key, (pod, end) in list(streams.items()):
            if end <= now:
                done += 1
                del streams[key]
            elif pod not in alive:
                cut += 1
                del streams[key]
        open_to = [n for n, p in alive.items() if MARK not in p["metadata"].get("annotations", {}) and p["status"].get("phase") == "Running"]
        for _ in range(3 if open_to and started < total else 0):
            started += 1
            streams[started] = (random.choice(open_to), now + random.uniform(0.2, 3))
        set_want(want, {n: sum(pod == n for pod, _ in streams.values()) for n in alive})
        time.sleep(0.1)
    print(f"{cut} of {total}")


def serve(file):
    while True:
        with open(file, encoding="ascii") as text:
            numbers = text.read().split()
        if len(numbers) == 2:
            set_want(int(numbers[0]), {n: int(numbers[1]) for n in pods()})
        time.sleep(0.1)


server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
{"choose": lambda a: choose(int(a)), "drain": lambda a: drain(int(a)), "serve": serve}[sys.argv[1]](sys.argv[2])
