#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The browser's half of run-backtest-page: prints TAP, numbered on from $TAP_FIRST."""
import argparse
import base64
import os

from browser import Keys, await_layout, collect, console, contrast, driver, has, js, no_sideways, ok, origins, prefer, press, same, size, visit

parser = argparse.ArgumentParser()
parser.add_argument('--pages', required=True)
parser.add_argument('--hostile', required=True)
parser.add_argument('--shots', required=True)
args = parser.parse_known_args()[0]


def full_shot(name):
    """The whole page, as far as it goes down."""
    await_layout()
    height = js('document.documentElement.scrollHeight')
    clip = {'x': 0, 'y': 0, 'width': js('innerWidth'), 'height': min(height, 9000), 'scale': 1}
    data = driver.execute_cdp_cmd('Page.captureScreenshot', {'captureBeyondViewport': True, 'clip': clip})['data']
    with open(os.path.join(args.shots, name + '.png'), 'wb') as f:
        f.write(base64.b64decode(data))


def open_page(name):
    visit('file://' + args.pages + '/' + name + '.html')


def looks(name, least_texts, least_marks):
    for scheme in ('light', 'dark'):
        prefer(scheme)
        for width in (1000, 400):
            size(width, 800)
            no_sideways('%s, %s' % (name, scheme))
            full_shot('%s-%s-%d' % (name, scheme, width))
            small = js("[...document.querySelectorAll('main *, header *')].filter(e => e.childNodes.length && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.getClientRects().length && parseFloat(getComputedStyle(e).fontSize) < 11).length")
            same('%s, %s: no text is smaller than 11 px at %d px' % (name, scheme, width), small, 0)
    size(1000, 800)
    contrast(name, least_texts, least_marks)


def test_code():
    open_page('code')
    looks('code', 150, 20)
    same('the page names its policy', lambda: js("document.querySelector('h1').textContent"), 'serving/llm-demand')
    has('and its mode', lambda: js("document.querySelector('header').innerText"), 'Closed loop (simulated)')
    same('every row of the table is a point of the frontier', lambda: js("[document.querySelectorAll('#results tbody tr').length, document.querySelectorAll('#frontier .point').length]"), [15, 15])
    same('labels of points do not cover each other', lambda: js(OVERLAPS), [])
    ok('every picture says the same in words', lambda: js("[...document.querySelectorAll('svg[role=img]')].every(s => s.getAttribute('aria-label').length > 5 && document.getElementById(s.getAttribute('aria-describedby')).textContent.length > 20)"))


OVERLAPS = '''(() => {
const boxes = [...document.querySelectorAll('#frontier .label')].map(e => [e.textContent, e.getBoundingClientRect()]), found = [];
for (const [a, p] of boxes) for (const [b, q] of boxes) if (a < b && Math.min(p.right, q.right) - Math.max(p.left, q.left) > 2 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4) found.push(a + ' and ' + b);
return found;
})()'''


def test_toggles():
    shown = lambda: js("getComputedStyle(document.querySelector('#over-time .s-hpa')).display !== 'none'")  # noqa: E731
    same('peers start hidden', shown, False)
    driver.execute_script("document.getElementById('t-hpa').focus()")
    press(Keys.SPACE)
    same('a box shows its curve, by keyboard', shown, True)
    press(Keys.SPACE)
    same('and hides it', shown, False)


def test_readout():
    out = lambda: js("document.querySelector('#time output').textContent")  # noqa: E731
    driver.execute_script("document.getElementById('over-time').focus()")
    press(Keys.PAGE_DOWN, Keys.PAGE_DOWN)
    has('arrow keys read the values at a moment', out, '1970-01-01 00:05')
    has('of each curve that is shown', out, 'llm-demand: 64')
    ok('and of no other', lambda: 'HPA' not in out(), out)


def test_decisions():
    same('decisions that change nothing are closed', lambda: js("[...document.querySelectorAll('details')].every(d => d.open === !!d.querySelector('summary .move b'))"), True)
    driver.execute_script("document.querySelector('details:not([open]) summary').focus()")
    press(Keys.ENTER)
    ok('Enter opens one to its trace', lambda: js("document.activeElement.parentElement.open && document.activeElement.parentElement.querySelectorAll('.steps li').length > 1"))
    same('on paper every one is open', lambda: js("(() => { dispatchEvent(new Event('beforeprint')); return document.querySelectorAll('details:not([open])').length; })()"), 0)
    ok('and afterwards as before', lambda: js("(() => { dispatchEvent(new Event('afterprint')); return document.querySelectorAll('details:not([open])').length > 5; })()"))


def test_recorded():
    open_page('recorded')
    looks('recorded', 120, 20)
    has('a file name that holds markup is text', lambda: js("document.querySelector('.facts').textContent"), args.hostile)
    same('and nothing of it became part of the page', lambda: js('[document.images.length, document.scripts.length, window.pwned === undefined]'), [0, 1, True])
    has('what ran is beside the policy', lambda: js("document.querySelector('.numbers').innerText"), 'what ran:')
    has('the gaps are in the notes', lambda: js("document.querySelector('.notes').innerText"), 'gap: 2026-')


def test_open():
    open_page('open')
    looks('open', 60, 4)
    has('open loop is labelled', lambda: js("document.querySelector('header').innerText"), 'Open loop (decisions on recorded data)')
    same('and has no frontier, since waits are unknown', lambda: js("document.querySelectorAll('#frontier').length"), 0)


def test_print():
    open_page('code')
    prefer('dark')
    driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'media': 'print', 'features': []})
    await_layout()
    same('on paper the page is light', lambda: js("[getComputedStyle(document.body).color, getComputedStyle(document.querySelector('.s-policy')).color]"), ['rgb(21, 24, 29)', 'rgb(11, 87, 208)'])
    full_shot('print')
    driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'media': '', 'features': []})


def test_without_script():
    driver.execute_cdp_cmd('Emulation.setScriptExecutionDisabled', {'value': True})
    open_page('code')
    text = driver.find_element('tag name', 'body').text
    driver.execute_cdp_cmd('Emulation.setScriptExecutionDisabled', {'value': False})
    ok('without its script the page has everything but the values under the pointer', all(part in text for part in ('Demand and replicas', 'Cost against lateness', 'The worst ten minutes', 'llm-demand')), text)


try:
    violations = []
    for test in (test_code, test_toggles, test_readout, test_decisions, test_recorded, test_open, test_print):
        test()
        violations += js('window.violations.concat(window.failures)')
    test_without_script()
    collect()
    same('nothing was refused by the page\'s own policy, and no script failed', violations, [])
    same('the console is silent', console, [])
    same('no server was asked for anything', sorted(o for o in origins if not o.startswith(('file:', 'data:', 'about:', 'chrome:'))), [])
finally:
    driver.quit()
