# SPDX-License-Identifier: Apache-2.0
"""Keeps COUNT useless connections open to one address until it is stopped.

flood.py HOST:PORT COUNT SOURCES

A third of the connections is silent, a third drips one byte of a request head per second, and a third asks for a large
page and does not read it. They come from SOURCES addresses of 127.1.0.0/16. A connection that the server closes is opened
again. Prints one line per 10 s: the connections open, and how many were opened in all.
"""
import asyncio
import resource
import sys
import time

KINDS = ('silent', 'drip', 'unread')
HEAD = b'GET /debug/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Filler: ' + b'x' * 4096

state = {'open': 0, 'opened': 0}


async def connection(address, kind, source):
    while True:
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(*address, local_addr=(source, 0), limit=1024), 10)
        except (OSError, asyncio.TimeoutError):
            await asyncio.sleep(1)
            continue
        state['open'] += 1
        state['opened'] += 1
        try:
            if kind == 'silent':
                await reader.read()
            elif kind == 'drip':
                for byte in HEAD:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    if reader.at_eof():
                        break
                    await asyncio.sleep(1)
            else:
                writer.transport.pause_reading()
                writer.write(b'GET /debug/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
                await writer.drain()
                await asyncio.sleep(20)
        except OSError:
            pass  # The server closed the connection: that is its right.
        finally:
            state['open'] -= 1
            writer.transport.abort()
        await asyncio.sleep(0.5)


async def main():
    host, port = sys.argv[1].rsplit(':', 1)
    count, sources = int(sys.argv[2]), int(sys.argv[3])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 200), hard))
    tasks = [asyncio.create_task(connection((host, int(port)), KINDS[i % 3], f'127.1.0.{i % sources + 1}'))
             for i in range(count)]
    while True:
        await asyncio.sleep(10)
        print(f"{time.time():.0f} open {state['open']} opened {state['opened']}", flush=True)
        assert len(tasks) == count


asyncio.run(main())
