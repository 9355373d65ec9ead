#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_http.py CONTROL: a server on a free port of loopback that answers every request as the word in the file CONTROL says:
hang, drip, slow-head, huge, headers, garbage, redirect, or a number, the expires_in of a token. Prints its port, then each answer."""
import socket
import sys
import threading
import time


def answer(c, mode):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    c.recv(65536)
    if mode == "hang":
        time.sleep(600)
    elif mode == "drip":
        c.sendall(head + b"Content-Length: 60000\r\n\r\n")
        for _ in range(600):
            c.sendall(b"{")
            time.sleep(1)
    elif mode == "slow-head":
        for byte in head + b"X-A: " + b"a" * 1000:
            c.sendall(bytes([byte]))
            time.sleep(1)
    elif mode == "huge":
        c.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(100000):
            c.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
    elif mode == "headers":
        c.sendall(head)
        for _ in range(100000):
            c.sendall(b"X-A: " + b"x" * 8000 + b"\r\n")
    elif mode == "garbage":
        c.sendall(b"\x00\xff" * 1000)
    elif mode == "redirect":
        c.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://%s:%d/stolen\r\nContent-Length: 0\r\n\r\n" % (b"127.0.0.1", port))
    else:
        body = b'{"access_token":"s3cret-token","token_type":"Bearer","expires_in":%s}' % mode.encode()
        c.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def serve(c):
    with open(sys.argv[1], encoding="ascii") as f:
        mode = f.read().strip()
    print("answer", mode, flush=True)
    try:
        answer(c, mode)
    except OSError:
        pass
    c.close()


server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(64)
port = server.getsockname()[1]
print("port", port, flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
