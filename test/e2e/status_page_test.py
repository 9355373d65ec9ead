#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The browser's half of run-status-page: prints TAP, numbered on from $TAP_FIRST. Waits are for conditions, with ceilings for a slow machine."""
import argparse
import os
import re
import signal
import time

import status_server
from browser import Keys, await_layout, collect, console, contrast, driver, focused, has, js, names, cell, no_sideways, ok, origins, prefer, press, press_shift_tab, refresh, same, shot, shows, size, visit, wait

parser = argparse.ArgumentParser()
for flag in ('page', 'url', 'policies', 'locked-url', 'empty-url', 'fleet-url'):
    parser.add_argument('--' + flag, required=True)
parser.add_argument('--pid', type=int, required=True)
parser.add_argument('--fleet', type=int, required=True)
args = parser.parse_known_args()[0]


def reload_policies(change):
    with open(args.policies) as f:
        text = f.read()
    with open(args.policies + '.new', 'w') as f:
        f.write(change(text))
    os.rename(args.policies + '.new', args.policies)
    os.kill(args.pid, signal.SIGHUP)


# ---- the tests ----

def test_table():
    visit(args.url)
    ok('the page shows every policy of the controller', wait('seven rows', lambda: sorted(names()) == ['blank', 'dry', 'hostile', 'limited', 'owned', 'still', 'web']), names())
    same('where policies need attention, they come first', lambda: names()[:3], ['owned', 'blank', 'hostile'])
    same('a policy says where it stands', lambda: cell('web', 'replicas').split('\n')[0], '3')
    has('its state and reason', lambda: cell('web', 'state'), 'Steady\nDesiredWithinRange')
    has('its target', lambda: cell('web', 'policy'), 'default · Deployment/web')
    has('the sentence is the one of the decision', lambda: cell('web', 'why'), 'want asks for 3 replicas')
    has('its signals', lambda: cell('web', 'signals'), 'want\n3')
    has('policy without data is held, with the reason', lambda: cell('blank', 'state') + cell('blank', 'why'), 'NoDatano data: the query of want returned no series')
    has('policy without data shows no value', lambda: cell('blank', 'signals'), 'no data')
    ok('one at its maximum says so', wait('at max', lambda: cell('limited', 'state') == 'At max\nTooManyReplicas' and cell('limited', 'replicas').split('\n')[0] == '8'), cell('limited', 'state'))
    same('in a color of its own', lambda: js("new Set(['max', 'steady', 'held'].map(c => getComputedStyle(document.querySelector('.x-state .' + c)).color)).size"), 3)
    has('one that is paused', lambda: cell('still', 'state'), 'Paused')
    has('a dry run wants more, and shows it', lambda: cell('dry', 'state') + cell('dry', 'replicas'), 'dry run\nDesiredWithinRange2 → 5')
    has('one whose target belongs to another says to which', lambda: cell('owned', 'state') + cell('owned', 'why'), 'ConflictHorizontalPodAutoscaler')
    has('problems beside the policies are shown', lambda: js("document.getElementById('problems').innerText"), 'target web is already scaled by default/web')
    same('no row has fallen out of its table', lambda: js("document.querySelectorAll('#rows tr').length"), 7)
    ok('the source is up and was heard', wait('source', "/Up\\s*default\\s*http:.*ms, answered/s.test(document.getElementById('sources').innerText)"), js("document.getElementById('sources').innerText"))
    has('the summary counts', lambda: ' '.join(js("document.getElementById('numbers').innerText").split()), 'Policies 7')
    has('the title says the worst', lambda: driver.title, 'held')
    ok('sparklines grow with the history', wait('a trend', "[...document.querySelectorAll('.x-trend path.p-now')].some(p => /H/.test(p.getAttribute('d')))"))
    ok('each picture says the same in words', lambda: js("[...document.querySelectorAll('svg:not([aria-hidden])')].every(s => s.getAttribute('role') === 'img' && s.getAttribute('aria-label').length > 5)"))
    has('such as', lambda: js("[...document.querySelectorAll('#rows .open')].find(b => b.textContent === 'web').closest('tr').querySelector('.x-trend svg').getAttribute('aria-label')"), 'last 3')
    same('it is a table to a screen reader', lambda: js("[document.querySelector('table').getAttribute('aria-rowcount'), document.querySelectorAll('th[scope=col]').length, document.querySelectorAll('th[scope=row]').length]"), ['8', 7, 7])


def test_update():
    driver.execute_script('window.sameDocument = true')
    reload_policies(lambda text: text.replace('vector(3)', 'vector(6)'))
    ok('a new decision shows without a reload', wait('web at 6', lambda: cell('web', 'replicas').split('\n')[0] == '6') and js('window.sameDocument === true'), cell('web', 'replicas'))
    ok('change is announced to screen readers', wait('announcement', "document.getElementById('announcement').getAttribute('aria-live') === 'polite' && /default\\/web/.test(document.getElementById('announcement').textContent)"), js("document.getElementById('announcement').textContent"))


def test_hostile_real():
    has('a message from outside that holds markup is text', lambda: js("[...document.querySelectorAll('#rows .open')].find(b => b.textContent === 'hostile').closest('tr').querySelector('.why').textContent"), '<script>window.pwned=1</script><img src=x onerror=window.pwned=1>"')
    driver.execute_script("[...document.querySelectorAll('#rows .open')].find(b => b.textContent === 'hostile').click()")
    ok('in the detail too', wait('detail', "document.getElementById('d-body').innerText.includes('<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"')"), js("document.getElementById('d-body').innerText"))
    same('and nothing of it became part of the page', lambda: js("[document.images.length, document.scripts.length, window.pwned === undefined]"), [0, 1, True])
    press(Keys.ESCAPE)


def test_filter():
    press('/')
    same('/ goes to the filter', lambda: js(focused), 'filter')
    press('blank')
    shows('blank')
    same('which shows what matches', lambda: names(), ['blank'])
    same('and how many', lambda: js("document.getElementById('shown').textContent"), '1 of 7 policies')
    same('the address keeps it', lambda: js('location.hash'), '#q=blank')
    press(Keys.ESCAPE)
    ok('Escape empties it', lambda: len(names()) == 7 and js("document.getElementById('filter').value") == '', names)
    press(Keys.TAB)
    same('Tab goes on to the states', lambda: js(focused), 'all')
    press(Keys.TAB, Keys.TAB, Keys.SPACE)
    ok('Space on Held shows what is held', wait('held', lambda: 'blank' in names() and 'web' not in names()), names())
    same('and says that it is pressed', lambda: js("document.querySelector('#states [aria-pressed=true]').dataset.state"), 'held')
    press(Keys.TAB, Keys.ENTER)
    shows('limited')
    same('Enter on At max, what would grow', lambda: names(), ['limited'])
    press(Keys.TAB, Keys.ENTER)
    shows('owned')
    same('Enter on Trouble, what has trouble', lambda: names(), ['owned'])
    driver.execute_script("document.querySelector('[data-state=acting]').focus()")
    press(Keys.ENTER)
    ok('Acting, what acts', wait('acting', lambda: names() == ['dry']), names())
    press('/', 'nothing of the kind')
    ok('filter without matches reports that', wait('none', "document.getElementById('none').innerText.includes('None of the 7 policies')"))
    driver.find_element('id', 'reset').click()
    ok('and a button leads back', wait('all', lambda: len(names()) == 7))


def test_sort():
    head = "document.querySelector('th[data-sort=%s] button')"
    driver.execute_script(head % 'policy' + '.focus()')
    press(Keys.ENTER)
    shows('blank', 'dry', 'hostile', 'limited', 'owned', 'still', 'web')
    same('a column head sorts', lambda: names(), ['blank', 'dry', 'hostile', 'limited', 'owned', 'still', 'web'])
    same('and says which way', lambda: js("[...document.querySelectorAll('[aria-sort]')].map(t => t.dataset.sort + ' ' + t.getAttribute('aria-sort'))"), ['policy ascending'])
    press(Keys.ENTER)
    same('again: the other way', lambda: (names()[0], js("document.querySelector('[aria-sort]').getAttribute('aria-sort')")), ('web', 'descending'))
    driver.execute_script((head % 'replicas') + '.click()')
    same('by replicas: most first', lambda: names()[0], 'limited')
    same('the address keeps it', lambda: js('location.hash'), '#sort=replicas-')


def test_keyboard_and_detail():
    visit(args.url)
    wait('rows', lambda: len(names()) == 7)
    order = []
    for _ in range(15):
        press(Keys.TAB)
        order.append(js(focused))
    same('Tab goes through the page in its order', order, ['pause', 'theme', 'filter', 'all', 'acting', 'held', 'max', 'trouble', 'Policy', 'Replicas', 'Signals', 'State', 'Last scale', 'owned', 'metrics'])
    ok('and what has the focus shows it', lambda: js("(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2; })()"))
    press_shift_tab()
    press(Keys.ARROW_DOWN)
    same('arrow keys go from policy to policy', lambda: js(focused), names()[1])
    press(Keys.END)
    same('End to the last', lambda: js(focused), names()[-1])
    press(Keys.HOME)
    while js(focused) != 'web':
        before = js(focused)
        press(Keys.ARROW_DOWN)
        if js(focused) == before:
            break
    press(Keys.ENTER)
    ok('Enter opens a policy', wait('detail', "!document.getElementById('detail').hidden && document.querySelectorAll('.chart').length === 2"))
    same('which the address keeps', lambda: js('location.hash'), '#policy=default/web')
    same('and which is where the reader is now', lambda: js(focused), 'd-name')
    body = lambda: js("document.getElementById('d-body').innerText")  # noqa: E731
    for part in ('want asks for 6 replicas', 'How the last decision was made', 'signals', 'Last decisions that brought something new', 'Scale up', 'Conditions', 'ScalingActive', 'Bounds\n1 to 20'):
        has('the detail has: ' + part.split('\n')[0], body, part)
    same('charts have axes, ticks and the bounds', lambda: js("[document.querySelectorAll('.chart .axis').length > 2, [...document.querySelectorAll('.chart text')].some(t => t.textContent === 'max 20'), [...document.querySelectorAll('.chart text')].some(t => /^\\d\\d:\\d\\d/.test(t.textContent))]"), [True, True, True])
    driver.execute_script("document.querySelector('.chart svg').focus()")
    press(Keys.ARROW_LEFT)
    caption = lambda: js("document.querySelector('.chart figcaption').innerText")  # noqa: E731
    ok('and are read point by point with arrow keys', lambda: re.search(r'\d\d:\d\d:\d\d: current (\d|unknown)', caption()), caption)
    contrast('a policy opened', 60, 10)
    size(1920, 1080)
    no_sideways('a policy opened')
    shot('detail-wide')
    size(360, 740)
    no_sideways('a policy opened')
    shot('detail-narrow')
    same('where it covers the page, nothing behind it can be reached', lambda: js("[...document.querySelectorAll('header, main, footer')].map(e => e.inert)"), [True, True, True])
    size(1440, 900)
    same('and where it does not, everything can', lambda: js("[...document.querySelectorAll('header, main, footer')].map(e => e.inert)"), [False, False, False])
    refresh()
    ok('a link to it opens it', wait('detail', "!document.getElementById('detail').hidden && document.querySelectorAll('.chart').length === 2"))
    wait('rows', lambda: len(names()) == 7)
    press(Keys.ESCAPE)
    ok('Escape closes it', lambda: js("document.getElementById('detail').hidden") and js('location.hash') == '', lambda: js('location.hash'))
    same('and leads back to its row', lambda: js(focused), 'web')
    driver.back()
    ok('so does the way back in the browser', wait('open again', "!document.getElementById('detail').hidden"))
    visit(args.url + '#policy=default/not-there&state=bad&sort=worse')
    ok('a link to a policy that is not there says so', wait('gone', "/no policy of that name/.test(document.getElementById('d-body').innerText)"))


def test_looks():
    visit(args.url)
    wait('rows', lambda: len(names()) == 7)
    contrast('the table', 60, 10)
    for width, height in ((1920, 1080), (1024, 768), (768, 1024), (360, 740)):
        size(width, height)
        no_sideways('the table')
        shot('table-%d' % width)
    same('on a small screen it is sorted by a list', lambda: js("getComputedStyle(document.querySelector('.sortby')).display !== 'none' && document.getElementById('sortby').options.length"), 10)
    ok('and every policy still has its name, state and reason', lambda: js("[...document.querySelectorAll('#rows .open')].every(b => { const r = b.closest('tr').getBoundingClientRect(); return [...b.closest('tr').querySelectorAll('.open, .x-state b')].every(e => { const q = e.getBoundingClientRect(); return q.width > 20 && q.left >= r.left && q.right <= r.right + 1; }); })"))
    size(1440, 900)
    background = "getComputedStyle(document.body).backgroundColor"
    light = js(background)
    for _ in range(2):
        driver.find_element('id', 'theme').click()
    ok('the theme can be chosen', lambda: js("document.getElementById('theme').textContent") == 'Theme: dark' and js(background) != light, lambda: js(background))
    refresh()
    same('and stays chosen', lambda: js("document.documentElement.dataset.theme"), 'dark')
    wait('rows', lambda: len(names()) == 7)
    driver.find_element('id', 'theme').click()
    prefer('light', 'reduce')
    same('nothing moves for those who want that', lambda: js("(() => { document.querySelector('#rows tr').classList.add('changed'); return getComputedStyle(document.querySelector('#rows td')).animationName; })()"), 'none')
    prefer('light')


def test_token():
    visit(args.locked_url)
    ok('a controller with a token asks for it', wait('asked', "!document.getElementById('auth').hidden && document.activeElement.id === 'token'"))
    same('and shows nothing', lambda: names(), [])
    contrast('the question for the token', 5)
    press('wrong', Keys.ENTER)
    ok('wrong token is refused, with a message', wait('refused', "document.getElementById('refused').textContent === 'That token was refused.'"), js("document.getElementById('refused').textContent"))
    same('nothing of it is kept', lambda: js("sessionStorage.getItem('gpuscale.token')"), None)
    driver.find_element('id', 'token').send_keys('s3cret', Keys.ENTER)
    ok('the right one shows the policies', wait('rows', lambda: len(names()) == 7))
    same('it is kept for the tab alone', lambda: js("[sessionStorage.getItem('gpuscale.token'), localStorage.getItem('gpuscale.token'), location.href.includes('s3cret')]"), ['s3cret', None, False])
    refresh()
    ok('where a reload finds it', wait('rows', lambda: len(names()) == 7))
    ok('dry run of all policies is shown once, at the top', lambda: 'dry run' in js("document.getElementById('who').innerText") and not js("[...document.querySelectorAll('#rows .tag')].some(t => t.textContent === 'dry run')"))


def test_empty():
    visit(args.empty_url)
    ok('no policies: the page says what to do', wait('empty', "/No policies yet/.test(document.getElementById('note').innerText) && /kubectl apply/.test(document.getElementById('note').innerText)"))
    contrast('no policies', 8)


def test_fleet():
    visit(args.fleet_url + '#sort=policy')
    ok('a thousand policies come', wait('rows', "document.getElementById('table').getAttribute('aria-rowcount') === '%d' && document.querySelectorAll('#rows .open').length > 0" % (args.fleet + 1)))
    ok('all of them decided', wait('decided', "/^%d/.test(document.querySelector('#numbers dd').innerText) && !/no decision/.test(document.getElementById('rows').innerText) && document.querySelectorAll('#rows .x-signals b').length > 5" % args.fleet))
    ok('only visible rows are in the document', lambda: 0 < js("document.querySelectorAll('#rows .open').length") < 60, lambda: js("document.querySelectorAll('#rows .open').length"))
    driver.execute_script("document.querySelector('#rows .open').focus()")
    press(Keys.END)
    last = 'model-%d' % (args.fleet - 1)
    same('numbers in names are in their order', lambda: last, js(focused))
    same('End goes to the last', lambda: js(focused), last)
    ok('focused row is visible', lambda: js("(() => { const b = document.activeElement.getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight; })()"))
    shot('thousand-end')
    driver.execute_script("scrollTo(0, document.body.scrollHeight / 2)")
    await_layout()
    visible = "[...document.querySelectorAll('#rows .open')].filter(b => { const r = b.getBoundingClientRect(); return r.top > 100 && r.bottom < innerHeight; }).length"
    ok('anywhere on the way there are rows', wait('rows in the middle', visible + ' >= 8'), js(visible))
    same('the focus is not lost by scrolling', lambda: js(focused), last)
    press('/', 'model-77')
    ok('the filter finds the few', wait('eleven', lambda: len(names()) == 11 and all(n.startswith('model-77') for n in names())), names())
    press(Keys.ESCAPE)
    shot('thousand')
    driver.execute_script("performance.clearMeasures('refresh')")
    ok('refreshes go on', wait('refresh', "performance.getEntriesByName('refresh').length > 0"))
    print('# script time of a refresh with %d policies, JSON read, table brought up to date: %.1f ms' % (args.fleet, js("performance.getEntriesByName('refresh')[0].duration")))


def test_answers(fixture):
    evil = '"><script>window.pwned=1</script><img src=x onerror="window.pwned=1">\' onclick=\'window.pwned=1'
    p = status_server.policy(0)
    p.update(namespace='<b>ns</b>', name=evil, message=evil, reason=evil, error=evil, target={'kind': evil, 'name': evil})
    p['signals'][0].update(name=evil, error=evil)
    p['history']['signals'][0]['name'] = evil
    p['conditions'][0].update(type=evil, status=evil, reason=evil)
    fixture.set(status_server.overview([p, {'namespace': 'x', 'name': 'bad', 'error': 'minReplicas 9 is above maxReplicas 3', 'conditions': None, 'signals': None}, {}], counts={'policies': 3, 'invalid': 1, 'waiting': 0},
                                       version=evil, sources=[{'name': evil, 'url': 'javascript:window.pwned=1', 'state': evil, 'error': evil}], controller={'identity': evil}))
    visit(fixture.url)
    ok('whatever comes is shown as text', wait('hostile row', lambda: evil in names()), names())
    driver.execute_script("[...document.querySelectorAll('#rows .open')].find(b => b.textContent.includes('script')).click()")
    ok('in every place of it', wait('hostile detail', "document.querySelectorAll('.chart').length === 3 && document.getElementById('d-name').textContent.startsWith('<b>ns</b>/')"))
    same('and stays that', lambda: js("[document.images.length, document.scripts.length, document.querySelectorAll('[onclick], [onerror], b b, a[href^=javascript]').length, window.pwned === undefined]"), [0, 1, 0, True])
    has('an invalid policy says what is wrong with it', lambda: cell('bad', 'why'), 'minReplicas 9 is above maxReplicas 3')
    press(Keys.ESCAPE)
    visit(fixture.url + '#policy=' + evil.replace('"', '%22').replace('<', '%3C').replace('>', '%3E').replace(' ', '%20') + '&q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E')
    ok('the address cannot smuggle anything in', wait('gone', "/no policy of that name/.test(document.getElementById('d-body').innerText)") and js('document.images.length + Number(window.pwned !== undefined)') == 0)

    blank = status_server.policy(6)
    blank['signals'] += [{'name': 'more-%d' % i, 'value': i, 'target': 4, 'perReplica': True, 'compared': i / 2, 'ageSeconds': 1} for i in range(4)]
    source = {'url': 'http://prometheus', 'latencySeconds': 0.02, 'lastSuccessTime': status_server.stamp(18000)}
    fixture.set(status_server.overview([blank, status_server.policy(3)], sources=[{**source, 'name': 'one', 'state': 'Degraded', 'error': 'some queries fail'}, {**source, 'name': 'two', 'state': 'Down', 'error': 'refused'}],
                                       controller={'identity': 'pod-1', 'dryRun': False, 'shardsOwned': 1, 'shardsTotal': 4}))
    visit(fixture.url + '#policy=' + blank['namespace'] + '/' + blank['name'])
    has('a source in trouble says what it is', lambda: ' '.join(js("document.getElementById('sources').innerText").split()), 'Degraded one http://prometheus 20 ms, answered 5 h ago some queries fail Down two')
    has('of several processes, each says which it is', lambda: js("document.getElementById('who').innerText"), 'pod-1\n1 of 4 shards')
    has('more signals than there is room for are counted', lambda: cell(blank['name'], 'signals'), 'and 4 more')
    has('the detail has them all, with the share of one replica', lambda: js("document.getElementById('d-body').innerText"), 'more-3\n1.5 / 4 per replica')
    contrast('a policy that is held', 60, 20)
    fixture.set(status_server.overview([], controller={'identity': 'pod-2', 'dryRun': False, 'leader': False, 'shardsOwned': 0, 'shardsTotal': 1}))
    visit(fixture.url)
    has('one that holds no lease says so', lambda: js("document.getElementById('note').innerText + document.getElementById('who').innerText"), 'Standing by')
    fixture.set(status_server.overview([], controller={'identity': 'pod-2_b', 'leaderIdentity': 'pod-1_a', 'dryRun': False, 'leader': False, 'shardsOwned': 0, 'shardsTotal': 1}))
    ok('standby names the leader', wait('named', "/standby\\s*leader: pod-1$/.test(document.getElementById('who').innerText)"), js("document.getElementById('who').innerText"))
    same('without a link where none is known', lambda: js("document.querySelectorAll('#who a').length"), 0)
    visit(fixture.url + 'api/v1/namespaces/gpuscale-system/pods/http:pod-2:8080/proxy/')
    same('with a link behind the proxy of the API server', lambda: js("document.querySelector('#note a')?.getAttribute('href')"), '/api/v1/namespaces/gpuscale-system/pods/http:pod-1:8080/proxy/')

    fleet = {'namespace': 'serving', 'name': 'models', 'target': {'kind': 'Deployment'}, 'paused': False, 'dryRun': False, 'time': status_server.stamp(2), 'currentReplicas': 96, 'readyReplicas': 92, 'desiredReplicas': 99,
             'action': 'ScaleUp', 'reason': 'Fleet', 'message': '40 targets: 38 ready, 3 idle, 2 at max, 1 hold, 0 left to others, 0 failed', 'held': False, 'error': '', 'conditions': [], 'signals': [],
             'fleet': {'targets': 40, 'ready': 38, 'idle': 3, 'atMax': 2, 'holding': 1, 'conflicts': 0, 'failed': 0, 'unmatchedSeries': 0, 'worst': [{'target': 'serving/llama-70b', 'state': 'NoData', 'message': 'no data: no series of queue'}]}}
    fixture.set(status_server.overview([fleet, status_server.policy(2)]))
    visit(fixture.url)
    has('a fleet is one row with the sums of its targets', lambda: cell('models', 'replicas') + cell('models', 'why'), '96 \u2192 99\n92 ready' + fleet['message'])
    same('which says how many targets it has', lambda: js("[...document.querySelectorAll('#rows .open')].find(b => b.textContent === 'models').closest('tr').querySelector('th .soft').textContent"), 'serving \u00b7 40 Deployments')
    driver.execute_script("[...document.querySelectorAll('#rows .open')].find(b => b.textContent === 'models').click()")
    has('its detail has the worst of them, and why', lambda: ' '.join(js("document.getElementById('d-body').innerText").split()), 'serving/llama-70b no data: no series of queue NoData')
    has('and the command that lists all', lambda: js("document.getElementById('d-body').innerText"), 'gpuscale get models --targets -n serving')
    for scheme in ('light', 'dark'):
        prefer(scheme)
        for width in (390, 1440):
            size(width, 900)
            no_sideways('a fleet')
            shot('fleet-%s-%d' % (scheme, width))
    prefer('light')
    size(1440, 900)
    press(Keys.ESCAPE)

    down = status_server.policy(6)
    down['message'] = 'the query of queue failed: source two is down: Prometheus: POST http://prometheus/api/v1/query: connection refused; is the server running?'
    fixture.set(status_server.overview([down], sources=[{**source, 'name': 'one', 'state': 'Up', 'error': ''}, {**source, 'name': 'two', 'state': 'Down', 'error': 'Prometheus: POST http://prometheus/api/v1/query: connection refused'}]))
    visit(fixture.url)
    ok('one banner says which source is down, and why', wait('banner', "/Source two is down, and last answered at .*: Prometheus: POST .*connection refused\\nPolicies that read it keep/.test(document.getElementById('down').innerText)"), js("document.getElementById('down').innerText"))
    same('its policies do not repeat that', lambda: cell(down['name'], 'why'), 'the query of queue failed: source two is down')
    same('the reason is there once', lambda: js("document.body.innerText.split('connection refused').length"), 2)
    contrast('a source that is down', 20)
    for scheme in ('light', 'dark'):
        prefer(scheme)
        for width in (390, 768, 1440):
            size(width, 900)
            no_sideways('a source that is down')
            shot('down-%s-%d' % (scheme, width))
    prefer('light')
    fixture.set(status_server.overview([down]))
    ok('the banner goes with its cause', wait('no banner', "document.getElementById('down').hidden"))

    fixture.set(status_server.overview([status_server.policy(i) for i in range(3)]))
    visit(fixture.url)
    wait('three rows', lambda: len(names()) == 3)
    ok('a leader says that it leads, and no more', lambda: re.match(r'[0-9.]+\s+gpuscale-7d9c4b5f6-x2x8p\s+leader\s+up ', js("document.getElementById('who').innerText")), lambda: js("document.getElementById('who').innerText"))
    seen = len(fixture.requests)
    ok('what has not changed is not sent again', wait('If-None-Match', lambda: any(r[0].startswith('/api/v1/overview') and r[1] == '"%d"' % fixture.etag for r in fixture.requests[seen:])), fixture.requests[-3:])
    ok('and stays on the page', lambda: len(names()) == 3, names)
    driver.execute_script("Object.defineProperty(document, 'hidden', { value: true, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))")
    ok('hidden tab sends no requests', wait('no timer', 'window.polls.size === 0'))
    seen = len(fixture.requests)
    driver.execute_script("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    ok('and at once when it is seen again', wait('asked', lambda: len(fixture.requests) > seen))
    wait('idle', 'window.polls.size === 1')
    driver.find_element('id', 'pause').click()
    ok('so does one that no longer refreshes', wait('no timer', 'window.polls.size === 0') and js("document.getElementById('pause').textContent") == 'Resume refreshing')
    driver.find_element('id', 'pause').click()
    wait('polling again', 'window.polls.size === 1')
    same('up to here the console is silent', console_lines(), [])

    fixture.status = 503
    ok('5xx is shown with the message of the controller', wait('banner', "!document.getElementById('banner').hidden && /answered 503: out of memory/.test(document.getElementById('banner').innerText)"), js("document.getElementById('banner').innerText"))
    same('what was known stays', len(names()), 3)
    visit(fixture.url)
    ok('also when there is nothing yet', wait('nothing yet', "/Nothing to show yet/.test(document.getElementById('note').innerText) && /answered 503/.test(document.getElementById('banner').innerText)"))
    contrast('an error', 6)
    fixture.status = 200
    driver.execute_script("document.querySelector('#banner button')?.click()")  # unless it has been answered already
    ok('it goes on by itself', wait('three rows', lambda: len(names()) == 3) and wait('no banner', "document.getElementById('banner').hidden"))


def test_stale():
    visit(args.url)
    wait('rows', lambda: len(names()) == 7)
    os.kill(args.pid, signal.SIGTERM)
    ok('a controller that is gone: a banner says since when', wait('banner', "!document.getElementById('banner').hidden && /cannot be reached.*What you see is from \\d\\d:\\d\\d:\\d\\d/.test(document.getElementById('banner').innerText)"), js("document.getElementById('banner').innerText"))
    has('and so does the head', lambda: js("document.getElementById('live').innerText"), 'stale')
    same('it interrupts', lambda: js("document.getElementById('banner').getAttribute('role')"), 'alert')
    same('the last that was known stays', len(names()), 7)
    contrast('stale', 60)


def console_lines():
    """Without the refusals that were asked for, and without what a network interface caused that another program added or removed."""
    collect()
    return [m for m in console if 'Failed to load resource' not in m or not re.search(r' 40[14] |ERR_NETWORK_CHANGED', m)]


def main():
    with open(args.page) as f:
        page = f.read()
    ok('the page is one file of less than 64 KB', len(page.encode()) < 64000, len(page.encode()))
    same('that writes no markup and evaluates nothing', re.findall(r'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|srcdoc|https?://(?!www\.w3\.org/2000/svg)', page), [])
    prefer('light')
    size(1440, 900)
    fixture = status_server.Server(args.page).start()
    violations = []
    for test in (test_table, test_update, test_hostile_real, test_filter, test_sort, test_keyboard_and_detail, test_looks, test_token, test_empty, test_fleet, lambda: test_answers(fixture), test_stale):
        begin = time.monotonic()
        test()
        violations += js('window.violations.concat(window.failures)')
        print('# %s: %.1f s' % (getattr(test, '__name__', ''), time.monotonic() - begin))
    collect()
    same('nothing was refused by the page\'s own policy, and no script failed', violations, [])
    same('the console holds nothing but the refusals and failures that were asked for', [m for m in console if 'Failed to load resource' not in m], [])
    allowed = {u.rstrip('/') for u in (args.url, args.locked_url, args.empty_url, args.fleet_url, fixture.url)}
    same('no other server was asked for anything', sorted(o for o in origins if o not in allowed and not o.startswith(('data:', 'about:', 'chrome:'))), [])
    ok('while those were', allowed <= origins, origins)
    fixture.stop()


try:
    main()
finally:
    driver.quit()
