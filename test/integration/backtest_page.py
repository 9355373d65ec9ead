#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""backtest_page.py PAGE JSON DECISIONS: exits with 1 and a reason when the page of a backtest is not what the JSON and the decisions of it say."""
import base64
import hashlib
import json
import re
import sys
import xml.etree.ElementTree as ET

with open(sys.argv[1], encoding='utf-8') as f:
    text = f.read()
with open(sys.argv[2], encoding='utf-8') as f:
    want = json.load(f)
with open(sys.argv[3], encoding='utf-8') as f:
    decisions = [json.loads(line) for line in f]
failures = []


def same(what, got, expected):
    if got != expected:
        failures.append('%s:\n  got:  %r\n  want: %r' % (what, got, expected))


page = ET.fromstring(text)  # which also fails for markup from outside
say = lambda e: ' '.join(''.join(e.itertext()).split())  # noqa: E731
by_id = {e.get('id'): e for e in page.iter() if e.get('id')}
same('ids are unique', len(by_id), sum(1 for e in page.iter() if e.get('id')))

# ---- nothing from elsewhere ----
same('one style and one script', [len(list(page.iter(t))) for t in ('style', 'script', 'img', 'iframe', 'object')], [1, 1, 0, 0, 0])
for e in page.iter():
    for name, value in e.attrib.items():
        if name in ('src', 'href', 'action', 'data', 'poster') and not value.startswith('data:,'):
            failures.append('%s has %s=%s' % (e.tag, name, value))
        if name == 'style' or name.startswith('on'):
            failures.append('%s has the attribute %s' % (e.tag, name))
same('styles load nothing', re.findall(r'url\(|@import|https?://', next(page.iter('style')).text), [])
policy = next(e for e in page.iter('meta') if e.get('http-equiv')).get('content')
for tag in ('style', 'script'):
    body = text[text.index('<%s>' % tag) + len(tag) + 2:text.index('</%s>' % tag)]
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    same('the policy of the page permits its ' + tag, re.findall(tag + r"-src ('[^;]*')", policy), ["'sha256-%s'" % digest])

# ---- heading and notes ----
same('the policy', say(next(page.iter('h1'))), want['namespace'] + '/' + want['policy'])
header = say(next(page.iter('header')))
for part in (' '.join(want['file'].split()), 'Open loop (' if want['mode'] == 'open-loop' else 'Closed loop ('):
    if part not in header:
        failures.append('the heading lacks %r' % part)
notes = [say(e) for e in page.iter('li') if any(e in list(u) for u in page.iter('ul') if u.get('class') == 'notes')]
same('the notes', notes, want['notes'] or ['no gaps'])
verdict = say(next(e for e in page.iter('p') if e.get('class') == 'verdict'))
for sentence in want['verdict']:
    if sentence + '.' not in verdict:
        failures.append('the verdict lacks %r' % sentence)

# ---- figures ----
KEYS = ['gpuHours', 'cost', 'latePercent', 'p95WaitSeconds', 'directionChanges', 'atMaxPercent']
if want['rows'][0]['cost'] is None:
    KEYS.remove('cost')
rows = list(next(page.iter('tbody')).iter('tr'))
same('rows', [say(r.find('th')) for r in rows], [' '.join(r['name'].split()) for r in want['rows']])
for row, expected in zip(rows, want['rows']):
    cells = row.findall('td')
    same('kind of ' + expected['name'], say(cells[0]), expected['kind'])
    for cell, key in zip(cells[1:], KEYS):
        data = cell.find('data')
        got = float(data.get('value')) if data is not None else float(say(cell)) if key == 'directionChanges' else None
        same('%s of %s' % (key, expected['name']), got, expected[key])
        if data is not None and '%.2f' % expected[key] not in say(data):
            failures.append('%s of %s reads %s' % (key, expected['name'], say(data)))
same('the row of the policy stands out', [say(r.find('th')) for r in rows if r.get('class') == 'policy'], [want['policy']])
if want['mode'] == 'closed-loop':
    known = [r for r in want['rows'] if r['latePercent'] is not None]
    same('points of the frontier', len([e for e in by_id['frontier'].iter() if e.get('class') == 'point']), len(known))
    labels = {say(e) for e in by_id['frontier'].iter() if e.get('class') == 'label'}
    same('labels of the frontier', labels, {' '.join(r['name'].split()) for r in known})

# ---- the worst ten minutes ----
shown = []
for item in by_id['decisions'].findall('li'):
    summary = item.find('details').find('summary')
    trace = item.find('details').find('ol').findall('li')
    shown.append((summary.find('time').get('datetime'), say(summary.findall('span')[1]), [say(t.findall('span')[2]) for t in trace], say(summary.findall('span')[0])))
first, last = [e.get('datetime') for e in by_id['worst'].find('p').iter('time')]
expected = []
for d in decisions:
    if first <= d['time'] <= last:
        move = str(d['desiredReplicas']) if d['currentReplicas'] == d['desiredReplicas'] else '%d \u2192 %d' % (d['currentReplicas'], d['desiredReplicas'])
        expected.append((d['time'], d['reason'] + ' ' + ' '.join(d['message'].split()), [' '.join(t['message'].split()) for t in d['trace']], move))
same('decisions', shown, expected)
if not shown:
    failures.append('no decision is shown')

for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
