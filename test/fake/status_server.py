#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A controller's page with answers of the test's choice: what a real one cannot be brought to say at will (hostile texts, 5xx, a thousand policies).

As a module: Server(page_path).start(); .overview, .details, .status, .token, .csp change what it says. As a program, for looking at the page:
status_server.py PORT PAGE [POLICIES]
"""
import base64
import datetime
import hashlib
import http.server
import json
import math
import re
import sys
import threading
import urllib.parse

CSP = "default-src 'none'; script-src %s; style-src %s; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
STATES = ('ScaleUp', 'ScaleDown', 'None', 'None', 'None', 'None', 'Hold', 'None', 'None', 'None')
SENTENCES = {
    'ScaleUp': ('AboveHighWatermark', 'queue is {v}, above its high watermark 10: {a} -> {b}'),
    'ScaleDown': ('ScaleDownLimit', '{b} is wanted, but behavior.scaleDown allows {b} at this time'),
    'None': ('InsideWatermarks', 'queue is {v}, inside its watermarks (2 to 10): staying at {a}'),
    'Hold': ('StaleData', 'the newest sample of sm_active is 3m12s old, more than 1m'),
}


def csp(page):
    """As controller/serve/status_page.c makes it: what stands between the tags, by digest."""
    def digests(tag):
        return ' '.join("'sha256-%s'" % base64.b64encode(hashlib.sha256(text).digest()).decode() for text in re.findall(b'<%s>(.*?)</%s>' % (tag, tag), page, re.S))
    return CSP % (digests(b'script'), digests(b'style'))


def stamp(ago_s=0):
    t = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago_s)
    return t.strftime('%Y-%m-%dT%H:%M:%S.') + '%03dZ' % (t.microsecond // 1000)


def policy(i, tick=0):
    """The i-th of many policies, as of some tick."""
    action = STATES[(i + tick) % len(STATES)]
    current = 1 + (i * 7 + tick) % 12
    desired = current + {'ScaleUp': 2, 'ScaleDown': -1 if current > 1 else 0}.get(action, 0)
    reason, sentence = SENTENCES[action]
    held = action == 'Hold'
    queue = [round(8 + 5 * math.sin((k + i) / 5) + (k * i % 7) / 3, 2) for k in range(60)]
    busy = [None if held and k > 52 else round(0.5 + 0.3 * math.sin((k + 2 * i) / 9), 3) for k in range(60)]
    now = [max(1, current + round(2 * math.sin((k - 59) / 8))) for k in range(60)]
    return {
        'namespace': ('serving', 'training', 'batch')[i % 3], 'name': 'model-%04d' % i, 'target': {'kind': 'Deployment', 'name': 'model-%04d' % i},
        'minReplicas': 1, 'maxReplicas': 16, 'currentReplicas': current, 'readyReplicas': current - (action == 'ScaleUp'), 'desiredReplicas': desired,
        'action': action, 'reason': reason, 'message': sentence.format(v=queue[-1], a=current, b=desired), 'held': held, 'paused': i % 41 == 5, 'dryRun': i % 53 == 7,
        'lastScaleTime': stamp(30 + i * 97 % 9000),
        'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'Reconciling'}, {'type': 'AbleToScale', 'status': 'True', 'reason': 'ReadyForNewScale'},
                       {'type': 'ScalingActive', 'status': 'False' if held else 'True', 'reason': reason},
                       {'type': 'ScalingLimited', 'status': 'True' if action == 'ScaleDown' else 'False', 'reason': reason}],
        'signals': [{'name': 'queue', 'value': queue[-1], 'target': 10, 'ageSeconds': 3}, {'name': 'sm_active', 'value': None if held else busy[-1], 'target': 0.7, 'ageSeconds': 192 if held else 4, 'error': 'stale' if held else ''}],
        'history': {'stepSeconds': 30, 'endTime': stamp(), 'current': now, 'desired': now[1:] + [desired], 'signals': [{'name': 'queue', 'values': queue}, {'name': 'sm_active', 'values': busy}]},
    }


def overview(policies, **more):
    return {'apiVersion': 'gpuscale.dev/v1alpha1', 'kind': 'Overview', 'time': stamp(), 'version': '0.2.0',
            'controller': {'identity': 'gpuscale-7d9c4b5f6-x2x8p', 'dryRun': False, 'leader': True, 'shardsOwned': 1, 'shardsTotal': 1, 'startTime': stamp(4000)},
            'sources': [{'name': 'default', 'url': 'http://prometheus.monitoring:9090', 'state': 'Up', 'error': '', 'lastSuccessTime': stamp(2), 'latencySeconds': 0.0042}],
            'counts': {'policies': len(policies), 'invalid': 0, 'waiting': 0}, 'policies': policies, **more}


class Server:
    def __init__(self, page):
        self.page, self.port, self.overview, self.details, self.status, self.token, self.etag, self.requests = page, 0, overview([]), {}, 200, None, 0, []
        self.lock = threading.Lock()

    def set(self, value):
        with self.lock:
            self.overview, self.etag = value, self.etag + 1

    def start(self, port=0):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def log_message(self, *args):
                pass

            def reply(self, status, body, kind='application/json', **headers):
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {'Content-Type': kind, 'Content-Length': len(body), 'X-Content-Type-Options': 'nosniff', **headers}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                if self.command != 'HEAD' and status != 304:
                    self.wfile.write(body)

            def do_GET(self):
                url = urllib.parse.urlparse(re.sub('^/api/v1/namespaces/[^/]+/pods/[^/]+/proxy', '', self.path))  # as behind an API server
                query = urllib.parse.parse_qs(url.query)
                with outer.lock:
                    value, tag = outer.overview, '"%d"' % outer.etag
                    outer.requests.append((self.path, self.headers.get('If-None-Match'), self.headers.get('Authorization')))
                if url.path == '/':
                    with open(outer.page, 'rb') as f:
                        page = f.read()
                    return self.reply(200, page, 'text/html; charset=utf-8', **{'Content-Security-Policy': csp(page)})
                if outer.status != 200:
                    return self.reply(outer.status, b'out of memory\n', 'text/plain')
                if outer.token and self.headers.get('Authorization') != 'Bearer ' + outer.token:
                    return self.reply(401, {'error': 'a token is needed'}, **{'WWW-Authenticate': 'Bearer'})
                if url.path == '/api/v1/overview':
                    if self.headers.get('If-None-Match') == tag:
                        return self.reply(304, b'', ETag=tag)
                    if 'history' not in query:
                        value = {**value, 'policies': [{k: v for k, v in p.items() if k != 'history'} for p in value['policies']]}
                    return self.reply(200, value, ETag=tag)
                if url.path == '/api/v1/policy':
                    key = query.get('policy', [''])[0]
                    found = [p for p in value['policies'] if p.get('namespace', '') + '/' + p.get('name', '') == key]
                    if not found:
                        return self.reply(404, {'error': 'no policy ' + key})
                    return self.reply(200, outer.details.get(key) or detail(found[0]), ETag=tag)
                return self.reply(404, {'error': 'not found'})

        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    @property
    def url(self):
        return 'http://127.0.0.1:%d/' % self.port

    def stop(self):
        self.http.shutdown()
        self.http.server_close()


def detail(p):
    def decision(ago, a, b, action, reason, message):
        return {'namespace': p['namespace'], 'name': p['name'], 'time': stamp(ago), 'currentReplicas': a, 'readyReplicas': a, 'pendingReplicas': 0, 'desiredReplicas': b, 'action': action, 'reason': reason,
                'message': message, 'signals': [{**s, 'proposal': b, 'state': 'OK' if s['value'] is not None else 'Missing', 'reason': reason} for s in p['signals']], 'trace': []}
    a, b = p.get('currentReplicas', 0), p.get('desiredReplicas', 0)
    last = decision(1, a, b, p.get('action', 'None'), p.get('reason', ''), p.get('message', ''))
    last['trace'] = [
        {'stage': 'windows', 'before': a, 'after': a, 'reason': 'WindowAggregate', 'message': 'sm_active is 0.81 over 2m, from 24 samples'},
        {'stage': 'signals', 'before': a, 'after': b + 1, 'reason': 'AboveHighWatermark', 'message': 'queue is 12.5, above its high watermark 10: %d -> %d' % (a, b + 1)},
        {'stage': 'combine', 'before': a, 'after': b + 1, 'reason': 'Combined', 'message': 'queue decides among 2 signals: %d -> %d' % (a, b + 1)},
        {'stage': 'rate', 'before': b + 1, 'after': b, 'reason': 'ScaleUpLimit', 'message': '%d is wanted, but behavior.scaleUp allows %d at this time' % (b + 1, b)}]
    past = [decision(900, 2, 4, 'ScaleUp', 'AboveHighWatermark', 'queue is 22, above its high watermark 10: 2 -> 4'), decision(300, 4, 4, 'Hold', 'StaleData', 'the newest sample of sm_active is 3m12s old, more than 1m'), last]
    return {'apiVersion': 'gpuscale.dev/v1alpha1', 'kind': 'PolicyDetail', 'policy': p, 'decision': last, 'decisions': past}


if __name__ == '__main__':
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    server = Server(sys.argv[2]).start(int(sys.argv[1]))
    print(server.url, flush=True)
    tick = 0
    while True:
        server.set(overview([policy(i, tick // 6) for i in range(count)]))
        tick += 1
        threading.Event().wait(5)
