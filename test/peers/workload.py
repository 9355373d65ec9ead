#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The workloads that run-compare gives to KEDA and to gpuscale: one shape of ScaledObject after the other, and metrics.
  workload.py objects N NAMESPACE PROMETHEUS_URL POLL_S START DURATION_S
                      prints Deployments and ScaledObjects as one JSON list; START is the epoch of the start, for cron
  workload.py serve N DURATION_S START_FILE
                      serves the metrics on a free loopback port, prints "listening on URL". The file has the epoch of
                      the start; without it, the values are those of second 0.
The values depend on the object, the signal and the time alone: steps, with times at which a series is missing."""
import datetime
import http.server
import json
import os
import random
import sys
import time

# How a shape's objects differ from the plain one. `zero` is the share of steps whose value is 0.
MISSING = (0.35, 0.55)  # of the duration: the series of the shapes with a fallback are missing
PAUSED = (0.25, 0.60)   # the shapes with a pause have its annotation
OUTAGE = (0.72, 0.80)   # Prometheus is stopped


def rules(kind, number, window_s):
    return {'policies': [{'type': kind, 'value': number, 'periodSeconds': 15}], 'stabilizationWindowSeconds': window_s}


FAST = {'scaleUp': rules('Pods', 20, 0), 'scaleDown': rules('Pods', 20, 0)}
SLOW = {'scaleUp': rules('Pods', 2, 0), 'scaleDown': rules('Percent', 50, 30)}


def trigger(name, signal, url, **more):
    query = 'peer_load{object="%s",signal="%s"}' % (name, signal)
    metadata = {'serverAddress': url, 'query': query, 'threshold': '2', **more}
    return {'type': 'prometheus', 'name': signal, 'metadata': metadata}


def cron(start, duration_s):
    at = lambda share: datetime.datetime.fromtimestamp(start + duration_s * share, datetime.timezone.utc)
    times = {'start': at(0.3).strftime('%M %H * * *'), 'end': at(0.65).strftime('%M %H * * *')}
    return {'type': 'cron', 'metadata': {'timezone': 'UTC', 'desiredReplicas': '8', **times}}


def several(o, url, when):
    o['triggers'].append(trigger(o['name'], 'b', url, threshold='3'))


def value(o, url, when):
    o['triggers'] = [{**trigger(o['name'], 'a', url, threshold='8'), 'metricType': 'Value'}]
    o['has_pods'] = True


def formula(o, url, when):
    several(o, url, when)
    o['advanced']['scalingModifiers'] = {'formula': 'a > 10 ? a : (a + b) / 2', 'target': '3'}


def fallback(o, url, when):
    o['triggers'] = [trigger(o['name'], 'a', url, ignoreNullValues='false')]
    o['fallback'] = {'failureThreshold': 2, 'replicas': 6}


def fallback_if_higher(o, url, when):
    fallback(o, url, when)
    o['fallback']['behavior'] = 'currentReplicasIfHigher'


def activation(o, url, when):
    o['triggers'] = [trigger(o['name'], 'a', url, activationThreshold='3')]
    o.update(min=0, cooldown=max(5, when['duration'] // 20), zero=0.4)


def idle(o, url, when):
    o.update(min=2, idle=0, cooldown=max(5, when['duration'] // 20), zero=0.4)


def with_cron(o, url, when):
    o['triggers'].append(cron(when['start'], when['duration']))


def slow(o, url, when):
    o['advanced']['horizontalPodAutoscalerConfig']['behavior'] = SLOW


def without_behavior(o, url, when):
    del o['advanced']['horizontalPodAutoscalerConfig']


def authenticated(o, url, when):
    o['triggers'] = [{**trigger(o['name'], 'a', url, authModes='basic'), 'authenticationRef': {'name': 'login'}}]


def plain(o, url, when):
    pass


# name | what is done to a plain object | annotation while PAUSED
SHAPES = [
    ('plain', plain, None),
    ('several', several, None),
    ('value', value, None),
    ('formula', formula, None),
    ('fallback', fallback, None),
    ('fallback-if-higher', fallback_if_higher, None),
    ('activation', activation, None),
    ('idle', idle, None),
    ('cron', with_cron, None),
    ('slow', slow, None),
    ('no-behavior', without_behavior, None),
    ('authenticated', authenticated, None),
    ('paused', plain, ('autoscaling.keda.sh/paused', 'true')),
    ('paused-replicas', plain, ('autoscaling.keda.sh/paused-replicas', '5')),
    ('paused-scale-in', plain, ('autoscaling.keda.sh/paused-scale-in', 'true')),
]


def shape_of(i):
    return SHAPES[i % len(SHAPES)]


def name_of(i):
    return 'o%03d-%s' % (i, shape_of(i)[0])


def index_of(name):
    return int(name[1:].split('-')[0])


def describe(i, url, when):
    o = {'name': name_of(i), 'min': 1, 'has_pods': False, 'zero': 0.1,
         'advanced': {'horizontalPodAutoscalerConfig': {'behavior': FAST}}}
    o['triggers'] = [trigger(o['name'], 'a', url)]
    shape_of(i)[1](o, url, when)
    return o


def value_at(i, signal, elapsed_s, duration_s):
    """None while the series is missing."""
    share = elapsed_s / duration_s
    if shape_of(i)[0].startswith('fallback') and MISSING[0] <= share < MISSING[1]:
        return None
    step_s = max(30, duration_s / 12)
    offset_s = random.Random('%d offset' % i).random() * step_s
    chance = random.Random('%d %s %d' % (i, signal, (elapsed_s + offset_s) // step_s))
    zero = describe(i, '', {'start': 0, 'duration': duration_s})['zero']
    return 0.0 if chance.random() < zero else float(chance.randint(1, 24))


def objects(n, namespace, url, poll_s, start, duration_s):
    # Prometheus asks for no password here, and ignores this one.
    login = {'name': 'login', 'namespace': namespace}
    items = [{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': login,
              'stringData': {'user': 'peer', 'password': 'sesame'}},
             {'apiVersion': 'keda.sh/v1alpha1', 'kind': 'TriggerAuthentication', 'metadata': login,
              'spec': {'secretTargetRef': [{'parameter': 'username', 'name': 'login', 'key': 'user'},
                                           {'parameter': 'password', 'name': 'login', 'key': 'password'}]}}]
    for i in range(n):
        o = describe(i, url, {'start': start, 'duration': duration_s})
        labels = {'app': o['name']}
        meta = {'name': o['name'], 'namespace': namespace}
        pods = {'metadata': {'labels': labels}, 'spec': {'containers': [{'name': 'main', 'image': 'none'}]}}
        items.append({'apiVersion': 'apps/v1', 'kind': 'Deployment',
                      'metadata': {**meta, 'labels': {'has-pods': str(o['has_pods']).lower()}},
                      'spec': {'replicas': 2, 'selector': {'matchLabels': labels}, 'template': pods}})
        spec = {'scaleTargetRef': {'name': o['name']}, 'pollingInterval': poll_s, 'minReplicaCount': o['min'],
                'maxReplicaCount': 10, 'triggers': o['triggers'], 'advanced': o['advanced']}
        for field, key in (('cooldownPeriod', 'cooldown'), ('idleReplicaCount', 'idle'), ('fallback', 'fallback')):
            if key in o:
                spec[field] = o[key]
        items.append({'apiVersion': 'keda.sh/v1alpha1', 'kind': 'ScaledObject', 'metadata': meta, 'spec': spec})
    json.dump({'apiVersion': 'v1', 'kind': 'List', 'items': items}, sys.stdout)


def serve(n, duration_s, start_file):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            elapsed_s = 0.0
            if os.path.exists(start_file):
                with open(start_file, encoding='ascii') as f:
                    elapsed_s = max(0.0, time.time() - float(f.read() or time.time()))
            lines = ['# TYPE peer_load gauge']
            for i in range(n):
                for signal in 'ab':
                    v = value_at(i, signal, elapsed_s, duration_s)
                    if v is not None:
                        lines.append('peer_load{object="%s",signal="%s"} %g' % (name_of(i), signal, v))
            body = ('\n'.join(lines) + '\n').encode()
            self.send_response(200)
            self.send_header('Content-Type', 'text/plain; version=0.0.4')
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Page)
    print('listening on http://127.0.0.1:%d' % server.server_port, flush=True)
    server.serve_forever()


if __name__ == '__main__':
    if sys.argv[1:2] == ['objects'] and len(sys.argv) == 8:
        objects(int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]), float(sys.argv[6]), int(sys.argv[7]))
    elif sys.argv[1:2] == ['serve'] and len(sys.argv) == 5:
        serve(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        sys.exit(__doc__)
