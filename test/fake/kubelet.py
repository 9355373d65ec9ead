#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kubelet's pod-resources socket for tests: a real gRPC server, or a peer that misbehaves.

  kubelet.py SOCKET SCENARIO_FILE

The scenario is read anew for every call (grpc) or once (the others), a JSON object:
  {"pods": [{"name", "namespace", "containers": [{"name", "devices": [{"resource", "ids": []}]}]}]}   answered by grpc
  {"status": 8}                    grpc answers this status         {"sleep": 5}       grpc answers after so long
  {"pad": 1000000, "pods": ..}     grpc adds an unknown field of so many bytes
  {"raw": "hex", "drip": 0.05}     no gRPC: these bytes go out, all at once or one each 0.05 s; then the peer waits
  {"raw": "hex", "close": true}    .. then it closes
"""
import json
import os
import socket
import sys
import threading
import time
from concurrent import futures


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def encode(scenario):
    reply = b""
    for pod in scenario.get("pods", []):
        body = field(1, pod["name"]) + field(2, pod["namespace"])
        for container in pod.get("containers", []):
            inner = field(1, container["name"])
            for devices in container.get("devices", []):
                ids = b"".join(field(2, i) for i in devices["ids"])
                topology = field(3, field(1, b"\x08\x01"))
                inner += field(2, field(1, devices["resource"]) + ids + topology)
            body += field(3, inner + varint(3 << 3) + b"\x07")  # a cpu id, unpacked
        reply += field(1, body)
    if scenario.get("pad"):
        reply += field(1000, b"\0" * scenario["pad"])
    return reply


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def serve_grpc(path, scenario_path):
    import grpc

    def list_pods(request, context):
        scenario = load(scenario_path)
        if request != b"":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a List request is empty")
        time.sleep(scenario.get("sleep", 0))
        if scenario.get("status"):
            code = next(c for c in grpc.StatusCode if c.value[0] == scenario["status"])
            context.abort(code, "as the scenario says")
        return encode(scenario)

    server = grpc.server(futures.ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)])
    handler = grpc.unary_unary_rpc_method_handler(list_pods)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),))
    if server.add_insecure_port("unix:" + path) == 0:
        sys.exit("cannot listen on " + path)
    server.start()
    print("listening", flush=True)
    server.wait_for_termination()


def misbehave(conn, scenario):
    with conn:
        try:
            conn.recv(65536)
            data = bytes.fromhex(scenario["raw"])
            if "drip" in scenario:
                for i in range(len(data)):
                    conn.sendall(data[i:i + 1])
                    time.sleep(scenario["drip"])
            else:
                conn.sendall(data)
            if not scenario.get("close"):
                time.sleep(30)
        except OSError:
            pass  # the client has hung up, as it should


def serve_raw(path, scenario):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        print("listening", flush=True)
        while True:
            conn, _ = listener.accept()
            threading.Thread(target=misbehave, args=(conn, scenario), daemon=True).start()


def main():
    path, scenario_path = sys.argv[1:]
    if os.path.exists(path):
        os.unlink(path)
    scenario = load(scenario_path)
    if "raw" in scenario:
        serve_raw(path, scenario)
    else:
        serve_grpc(path, scenario_path)


main()
