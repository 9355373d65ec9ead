#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crowd.py PORT TLS PAGE PROBE SOURCES CONNECTIONS RATE PROBES: keeps CONNECTIONS connections open to 127.0.0.1:PORT that
send no complete request: a third is silent, a third sends a byte of a request now and then, a third asks for PAGE and does not read
it (with TLS, a tenth of these; the others send a whole ClientHello and leave the handshake there). They come from SOURCES addresses (1: from 127.0.0.1, as the probes do). Whatever the server closes is opened again, at
most RATE a second. Meanwhile another process sends PROBES requests for PROBE, each over a connection of its own and with
the timeout of the manifests' probes. Prints "N of PROBES answered, the slowest after S s, C connections made, R a second".
TLS is yes or no."""
import os
import select
import signal
import socket
import ssl
import sys
import time

PROBE_S = 5  # from connecting to the reply, as the kubelet counts
DRIP_EVERY_S = 0.5
HELLO_START = bytes.fromhex('1603010200010001fc0303')


def context():
    c = ssl.create_default_context()
    c.check_hostname = False
    c.verify_mode = ssl.CERT_NONE
    return c


def whole_hello():
    outgoing = ssl.MemoryBIO()
    handshake = context().wrap_bio(ssl.MemoryBIO(), outgoing)
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()


class Crowd:
    def __init__(self, port, tls, page, sources, size, rate):
        self.port, self.page, self.sources, self.size, self.rate = port, page, sources, size, rate
        self.context = context() if tls else None
        self.hello = whole_hello() if tls else b''
        self.poll = select.epoll()
        self.members = {}  # descriptor -> [socket, kind, drops sent]
        self.made = 0

    def add(self):
        kind = ('silent', 'drip', 'slow')[self.made % 3]
        s = socket.socket()
        s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        if self.sources > 1:
            source = self.made % self.sources
            s.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
            s.bind((f'127.1.{source // 250}.{1 + source % 250}', 0))
        self.made += 1
        try:
            s.connect_ex(('127.0.0.1', self.port))
        except OSError:  # no port is free at this moment
            s.close()
            return
        if self.context and kind == 'slow' and self.made % 30 == 2:  # a handshake costs the attacker something, too
            s = self.context.wrap_socket(s, do_handshake_on_connect=False)
        self.members[s.fileno()] = [s, kind, 0]
        self.poll.register(s.fileno(), select.EPOLLOUT | select.EPOLLHUP | select.EPOLLERR)

    def drop(self, fd):
        member = self.members.pop(fd)
        try:
            self.poll.unregister(fd)
        except OSError:
            pass
        member[0].close()

    def say(self, fd):
        """Sends the next bytes of its kind. Nothing is ever read."""
        s, kind, sent = self.members[fd]
        if isinstance(s, ssl.SSLSocket) and sent == 0:
            try:
                s.do_handshake()
            except ssl.SSLWantReadError:
                self.poll.modify(fd, select.EPOLLIN | select.EPOLLRDHUP)
                return
            except ssl.SSLWantWriteError:
                return
        plain = not self.context or isinstance(s, ssl.SSLSocket)
        head = f'GET {self.page} HTTP/1.1\r\nHost: localhost\r\nX: '.encode() if plain else HELLO_START
        if kind == 'slow':
            text = b'' if sent else head + b'\r\n\r\n' if plain else self.hello
        elif kind == 'silent':
            text = b''
        else:
            text = head if sent == 0 else b'x'
        if text:
            s.send(text)
        self.members[fd][2] += 1
        self.poll.modify(fd, select.EPOLLRDHUP)

    def run(self, is_over):
        start = time.monotonic()
        next_drip = start + DRIP_EVERY_S
        tokens, counted = float(self.size), start
        while not is_over():
            now = time.monotonic()
            # What was not used for a tenth of a second is lost: a held-up crowd does not become a burst.
            tokens, counted = min(tokens + (now - counted) * self.rate, max(tokens, self.rate / 10)), now
            allowed = int(tokens)
            for _ in range(min(500, self.size - len(self.members), allowed)):
                self.add()
                tokens -= 1
            for fd, events in self.poll.poll(0.05, 2000):
                try:
                    if events & (select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP):
                        self.drop(fd)
                    else:
                        self.say(fd)
                except OSError:
                    self.drop(fd)
            if time.monotonic() >= next_drip:
                next_drip = time.monotonic() + DRIP_EVERY_S
                for fd in [fd for fd, m in self.members.items() if m[1] == 'drip' and m[2]][:2000]:
                    try:
                        self.say(fd)
                    except OSError:
                        self.drop(fd)


def probe(port, tls, path):
    own = context() if tls else None  # takes longer than a handshake
    start = connected = time.monotonic()
    try:
        with socket.create_connection(('127.0.0.1', port), PROBE_S) as s:
            connected = time.monotonic()
            if tls:
                s = own.wrap_socket(s)
            s.sendall(f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n'.encode())
            answered = s.recv(64).startswith(b'HTTP/1.1 200 ')
    except OSError as e:
        print(f'# {e!r}', file=sys.stderr)
        answered = False
    took = time.monotonic() - start
    if took > 1 or not answered:
        print(f'# a probe took {took:.2f} s, {connected - start:.2f} s to connect', file=sys.stderr)
    return answered and took < PROBE_S, took


def main():
    port, tls, page, path, sources, size, rate, probes = sys.argv[1:]
    port, tls, sources, size, rate, probes = int(port), tls == 'yes', int(sources), int(size), int(rate), int(probes)
    crowd = Crowd(port, tls, page, sources, size, rate)
    read, write = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        time.sleep(2)  # until the crowd is there
        results = [(probe(port, tls, path), time.sleep(0.02))[0] for _ in range(probes)]
        answered, slowest = sum(r[0] for r in results), max(r[1] for r in results)
        os.write(write, f'{answered} of {probes} answered, the slowest after {slowest:.2f} s'.encode())
        os._exit(0)
    os.close(write)
    os.set_blocking(read, False)
    end = start + 2 + probes * 2 * PROBE_S
    answer = [b'']

    def is_over():
        try:
            answer[0] = os.read(read, 200)
            return True
        except BlockingIOError:
            return time.monotonic() > end

    crowd.run(is_over)
    if not answer[0]:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    reached = (crowd.made - size) / (time.monotonic() - start)
    print(f'{answer[0].decode()}, {crowd.made} connections made, {reached:.0f} a second after the first {size}')


main()
