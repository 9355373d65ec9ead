#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the replicas that KEDA and its HPAs set with what gpuscale decides in a dry run on the same ScaledObjects.
  compare.py sample API_FOLDER NAMESPACE GPUSCALE_URL START DURATION_S PERIOD_S
                      prints a line of JSON for each sample, until DURATION_S after the epoch START; sets and removes
                      the annotations of the shapes with a pause
  compare.py report FILE POLL_S SLACK_S
                      prints each difference with its explanation, and a table of the shapes. Exit 1 when a difference
                      has none
Both evaluate every POLL_S seconds, at different moments. So at any time the decision of gpuscale must be within the
replicas that the target had from POLL_S + SLACK_S seconds before to as long after; otherwise it is a difference.
Differences of one object that follow each other within that time are one episode."""
import collections
import json
import sys
import time
import urllib.request

import workload
from api import Api

# shape | does gpuscale want more | why, as in docs/migrate.md. The first row that matches an episode explains it.
EXPLANATIONS = [
    ('slow', None, 'a dry run has no scales of its own, so a limit per period holds back each decision, not their sequence'),
    ('no-behavior', True, 'without behavior, the HPA grows to 4 or to twice as many replicas, gpuscale by 4'),
    ('activation', True, 'from its idle level, a target goes at once to what the signals ask for'),
    ('idle', True, 'from its idle level, a target goes at once to what the signals ask for'),
]
SETTLES_S = 75  # PROMQL_SETTLES_MS, and an evaluation


def sample(folder, namespace, url, start, duration_s, period_s):
    api = Api(folder)
    scaled_objects = '/apis/keda.sh/v1alpha1/namespaces/%s/scaledobjects' % namespace
    names = [o['metadata']['name'] for o in api.get(scaled_objects)['items']]
    listed = '/namespaces/' + namespace + '/%s?resourceVersion=0'
    paused = False
    while (elapsed_s := time.time() - start) < duration_s:
        if paused != (workload.PAUSED[0] <= elapsed_s / duration_s < workload.PAUSED[1]):
            paused = not paused
            for name in names:
                annotation = workload.shape_of(workload.index_of(name))[2]
                if annotation:
                    changed = {annotation[0]: annotation[1] if paused else None}
                    api.merge('%s/%s' % (scaled_objects, name), {'metadata': {'annotations': changed}})
        hpas = {h['metadata']['name'][len('keda-hpa-'):]: h.get('status', {}).get('desiredReplicas')
                for h in api.get('/apis/autoscaling/v2' + listed % 'horizontalpodautoscalers')['items']}
        replicas = {d['metadata']['name']: d['spec']['replicas']
                    for d in api.get('/apis/apps/v1' + listed % 'deployments')['items']}
        with urllib.request.urlopen(url + '/debug/decisions', timeout=30) as response:
            decisions = {d['name']: d for d in json.load(response)['items']}
        line = {name: [replicas.get(name), hpas.get(name)] + [decisions.get(name, {}).get(f) for f in ('desiredReplicas', 'reason')]
                for name in names}
        print(json.dumps({'s': round(elapsed_s, 1), 'objects': line}), flush=True)
        time.sleep(max(0, period_s - (time.time() - start - elapsed_s)))


class Episode:
    def __init__(self, name, since_s):
        self.name, self.since_s, self.until_s = name, since_s, since_s
        self.shape = workload.shape_of(workload.index_of(name))[0]
        self.keda, self.hpa, self.gpuscale, self.reasons = [], [], [], []

    def add(self, elapsed_s, replicas, hpa, desired, reason):
        self.until_s = elapsed_s
        for values, value in ((self.keda, replicas), (self.hpa, hpa), (self.gpuscale, desired), (self.reasons, reason)):
            if not values or values[-1] != value:
                values.append(value)

    def explanation(self, poll_s, window_s, duration_s):
        def is_near(share, before_s, after_s):
            return share * duration_s - before_s <= self.since_s <= self.until_s <= share * duration_s + after_s

        more = self.gpuscale[0] > self.keda[0] if None not in (self.gpuscale[0], self.keda[0]) else None
        if is_near(workload.OUTAGE[0], window_s, window_s):
            return 'the outage began before the next evaluation of KEDA'
        if is_near(workload.OUTAGE[1], 0, SETTLES_S) and more:
            return 'after the outage, KEDA takes a Prometheus that has not scraped yet for a load of 0, gpuscale waits'
        if workload.shape_of(workload.index_of(self.name))[2]:
            if is_near(workload.PAUSED[0], window_s, window_s):
                return 'the pause began before the next evaluation of KEDA'
            if is_near(workload.PAUSED[1], 0, 2 * window_s):
                return 'after a pause, KEDA first creates its HPA again'
        for shape, wants_more, why in EXPLANATIONS:
            if shape == self.shape and wants_more in (None, more):
                return why
        if self.until_s - self.since_s < poll_s:
            return 'it lasted for less than an interval, in which KEDA need not have looked'
        return None

    def __str__(self):
        text = lambda values: ' '.join(map(str, values))
        return '%-24s %4.0f to %4.0f s  target %s (HPA %s), gpuscale %s (%s)' % (
            self.name, self.since_s, self.until_s, text(self.keda), text(self.hpa), text(self.gpuscale),
            text(self.reasons))


def episodes_of(name, samples, window_s):
    """Returns the episodes of an object, and how many of its samples were compared and differed."""
    episodes, differing = [], 0
    times = [s['s'] for s in samples]
    first = last = 0
    compared = [s for s in samples if window_s <= s['s'] <= times[-1] - window_s]
    for s in compared:
        while times[first] < s['s'] - window_s:
            first += 1
        while last < len(times) and times[last] <= s['s'] + window_s:
            last += 1
        around = [x['objects'][name][0] for x in samples[first:last] if x['objects'][name][0] is not None]
        replicas, hpa, desired, reason = s['objects'][name]
        if desired is not None and around and min(around) <= desired <= max(around):
            continue
        differing += 1
        if not episodes or s['s'] - episodes[-1].until_s > window_s:
            episodes.append(Episode(name, s['s']))
        episodes[-1].add(s['s'], replicas, hpa, desired, reason)
    return episodes, len(compared), differing


def print_row(shape, objects, compared, differing, episodes):
    share = 100 * differing / max(1, compared)
    print('%-20s %7d %9d %9d %6.2f%% %8d' % (shape, objects, compared, differing, share, episodes))


def report(path, poll_s, slack_s):
    with open(path, encoding='utf-8') as f:
        samples = [json.loads(line) for line in f]
    if len(samples) < 2:
        sys.exit('no samples')
    duration_s = samples[-1]['s']
    shapes = collections.OrderedDict((s[0], [0, 0, 0, 0]) for s in workload.SHAPES)
    explained, unexplained = collections.defaultdict(list), []
    for name in samples[0]['objects']:
        episodes, compared, differing = episodes_of(name, samples, poll_s + slack_s)
        row = shapes[workload.shape_of(workload.index_of(name))[0]]
        row[0] += 1
        row[1] += compared
        row[2] += differing
        row[3] += len(episodes)
        for e in episodes:
            why = e.explanation(poll_s, poll_s + slack_s, duration_s)
            (explained[why] if why else unexplained).append(e)
    for why, episodes in explained.items():
        print('%s: %d' % (why, len(episodes)))
        for e in episodes:
            print('  %s' % e)
    if unexplained:
        print('unexplained: %d' % len(unexplained))
        for e in unexplained:
            print('  %s' % e)
    print('%-20s %7s %9s %9s %7s %8s' % ('shape', 'objects', 'compared', 'differing', 'share', 'episodes'))
    for shape, (objects, compared, differing, n) in shapes.items():
        if objects:
            print_row(shape, objects, compared, differing, n)
    print_row('all', *[sum(row[i] for row in shapes.values()) for i in range(4)])
    print('%d samples in %.0f s, %d differences without an explanation' % (len(samples), duration_s, len(unexplained)))
    sys.exit(1 if unexplained else 0)


if __name__ == '__main__':
    if sys.argv[1:2] == ['sample'] and len(sys.argv) == 8:
        sample(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]), float(sys.argv[6]), float(sys.argv[7]))
    elif sys.argv[1:2] == ['report'] and len(sys.argv) == 5:
        report(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
    else:
        sys.exit(__doc__)
