#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_kubelet.py SOCKET CONTROL: a pod-resources socket that answers every call as the word in the file CONTROL says, for as
long as the caller reads. Prints each call."""
import os
import random
import socket
import sys
import threading
import time


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


SETTINGS = frame(4)
HEADERS = frame(1, 4, 1, b"\x88")
# What follows SETTINGS, and what is then sent over and over.
ENDLESS = {
    "settings": (b"", SETTINGS),
    "pings": (b"", frame(6, payload=b"x" * 8)),
    "ping-answers": (b"", frame(6, 1, payload=b"x" * 8)),
    "windows": (b"", frame(8, payload=b"\0\0\0\1")),
    "unknown": (b"", frame(0x7F, 0xFF, 0, b"x" * 16000)),
    "goaway": (b"", frame(7, payload=b"\x7f\xff\xff\xff\0\0\0\0")),
    "empty-data": (HEADERS, frame(0, 0, 1)),
    "continuation": (frame(1, 0, 1, b"\x88"), frame(9, 0, 1)),
    "headers": (frame(1, 0, 1, b"\x88"), frame(9, 0, 1, b"\x88" * 16000)),
    "header-blocks": (b"", frame(1, 4, 1, b"\x88" * 16000)),
    "padding": (HEADERS, frame(0, 8, 1, b"\xff" + b"\0" * 255)),
}


def answer(c, mode):
    c.recv(65536)
    if mode in ENDLESS:
        first, again = ENDLESS[mode]
        c.sendall(SETTINGS + first)
        again *= max(1, 65536 // len(again))
        while True:
            c.sendall(again)
    elif mode == "random":
        c.sendall(random.randbytes(100000))
    elif mode == "random-frames":
        c.sendall(SETTINGS)
        while True:
            c.sendall(frame(random.choice((0, 1, 3, 6, 7, 8, 9, 20)), random.randrange(256), random.choice((0, 1, 3)), random.randbytes(random.randrange(40))))
    elif mode == "length":
        c.sendall(SETTINGS + HEADERS + frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 100))
    elif mode == "frame-length":
        c.sendall(SETTINGS + b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 100000)
    elif mode == "message":  # not a ListPodResourcesResponse
        body = b"\0\x00\x10\x00\x00" + b"\x0a" * (1 << 20)
        c.sendall(SETTINGS + HEADERS)
        for i in range(0, len(body), 16000):
            c.sendall(frame(0, 0, 1, body[i:i + 16000]))
        c.sendall(frame(1, 5, 1, b"\x00\x0bgrpc-status\x010"))
    elif mode == "drip":
        for byte in SETTINGS + HEADERS + frame(0, 0, 1, b"\0\0\0\x10\0" + b"x" * 4000):
            c.sendall(bytes([byte]))
            time.sleep(1)
    else:  # silent
        time.sleep(600)


def serve(c):
    with open(sys.argv[2], encoding="ascii") as f:
        mode = f.read().strip()
    print("call", mode, flush=True)
    try:
        answer(c, mode)
    except OSError:
        pass
    c.close()


server = socket.socket(socket.AF_UNIX)
if os.path.exists(sys.argv[1]):
    os.unlink(sys.argv[1])
server.bind(sys.argv[1])
server.listen(16)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
