# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of a real Prometheus that makes chosen queries slow or wrong.

proxy.py --upstream HOST:PORT --faults FILE [--listen HOST:PORT]

Prints "listening on URL" when it accepts connections. FILE is read again whenever it changes. Each line is

    NEEDLE ACTION [ARGUMENT]

and applies to every request whose decoded target and body contain NEEDLE; the first matching line counts. Actions:
    status CODE     an answer of Prometheus' error form with this HTTP status
    delay SECONDS   the upstream's answer, this much later
    reset           the connection is closed without an answer
    malformed       HTTP 200 with a body that is not JSON
    truncated       HTTP 200 that announces more bytes than it sends
    hang            no answer; the connection stays open
Everything else is passed on unchanged.
"""
import argparse
import asyncio
import os
import urllib.parse

BODY_MAX = 1 << 20
HEAD_MAX = 64 << 10


class Faults:
    def __init__(self, path):
        self.path, self.stamp, self.rules = path, None, []

    def match(self, text):
        stamp = os.stat(self.path).st_mtime_ns
        if stamp != self.stamp:
            with open(self.path, encoding='utf-8') as f:
                self.rules = [line.split() for line in f if line.strip()]
            self.stamp = stamp
        return next((rule[1:] for rule in self.rules if rule[0] in text), None)


async def read_message(reader):
    """Returns (head bytes, body bytes), or None at the end of the stream."""
    try:
        head = await reader.readuntil(b'\r\n\r\n')
    except asyncio.IncompleteReadError:
        return None
    length = 0
    for line in head.split(b'\r\n')[1:]:
        name, _, value = line.partition(b':')
        if name.lower() == b'content-length':
            length = int(value)
    if length > BODY_MAX:
        raise ValueError('request body too large')
    return head, await reader.readexactly(length)


def answer(status, body):
    return (f'HTTP/1.1 {status} Fault\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n').encode() + body


async def pass_on(upstream, head, body, writer):
    """Sends one request on a connection of its own and copies the answer until the upstream closes it."""
    reader, out = await asyncio.open_connection(*upstream)
    try:
        lines = [line for line in head.split(b'\r\n') if not line.lower().startswith(b'connection:')]
        out.write(b'\r\n'.join(lines[:1] + [b'Connection: close'] + lines[1:]) + body)
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    finally:
        out.close()


async def serve(upstream, faults, reader, writer):
    try:
        message = await read_message(reader)
        if message is None:
            return
        head, body = message
        rule = faults.match(urllib.parse.unquote_plus((head + body).decode('latin-1')))
        action, argument = (rule + [''])[:2] if rule else ('', '')
        if action == 'status':
            writer.write(answer(int(argument), b'{"status":"error","errorType":"fault","error":"injected"}'))
        elif action == 'malformed':
            writer.write(answer(200, b'<html>not Prometheus</html>'))
        elif action == 'truncated':
            writer.write(answer(200, b'{"status":"success","data":{"resultType":"vector",')[:-20])
        elif action == 'reset':
            writer.transport.abort()
        elif action == 'hang':
            await reader.read()
        else:
            if action == 'delay':
                await asyncio.sleep(float(argument))
            await pass_on(upstream, head, body, writer)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # The client or the upstream went away: this request ends with it.
    finally:
        writer.close()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--upstream', required=True)
    parser.add_argument('--faults', required=True)
    parser.add_argument('--listen', default='127.0.0.1:0')
    args = parser.parse_args()
    host, port = args.upstream.rsplit(':', 1)
    faults = Faults(args.faults)
    address, listen_port = args.listen.rsplit(':', 1)
    server = await asyncio.start_server(
        lambda r, w: serve((host, int(port)), faults, r, w), address, int(listen_port), limit=HEAD_MAX, backlog=1024)
    print('listening on http://%s:%d' % server.sockets[0].getsockname()[:2], flush=True)
    await server.serve_forever()


asyncio.run(main())
