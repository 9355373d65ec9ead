#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The browser's half of run-advise-page: prints TAP, numbered on from $TAP_FIRST."""
import argparse
import base64
import os

from browser import await_layout, collect, console, contrast, driver, has, js, no_sideways, origins, prefer, same, size, visit

parser = argparse.ArgumentParser()
parser.add_argument('--page', required=True)
parser.add_argument('--shots', required=True)
args = parser.parse_known_args()[0]


def full_shot(name):
    await_layout()
    clip = {'x': 0, 'y': 0, 'width': js('innerWidth'), 'height': min(js('document.documentElement.scrollHeight'), 9000), 'scale': 1}
    data = driver.execute_cdp_cmd('Page.captureScreenshot', {'captureBeyondViewport': True, 'clip': clip})['data']
    with open(os.path.join(args.shots, name + '.png'), 'wb') as f:
        f.write(base64.b64decode(data))


def test_page():
    visit('file://' + args.page)
    for scheme in ('light', 'dark'):
        prefer(scheme)
        for width in (1440, 390):
            size(width, 800)
            no_sideways('%s, %d px' % (scheme, width))
            full_shot('%s-%d' % (scheme, width))
    size(1440, 800)
    contrast('advise', 60, 0)
    same('every workload is an item', lambda: js("document.querySelectorAll('details.item').length"), 8)
    same('the first one is open', lambda: js("[...document.querySelectorAll('details.item')].map(d => d.open).indexOf(true)"), 0)
    has('the policy is part of it', lambda: js("document.querySelector('details.item details pre').textContent"), 'kind: GPUAutoscaler')
    has('the saving of a month is in the head', lambda: js("document.querySelector('.numbers .main').innerText"), 'USD')


try:
    test_page()
    collect()
    same('nothing was refused by the page\'s own policy', js('window.violations.concat(window.failures)'), [])
    same('the console is silent', console, [])
    same('no server was asked for anything', sorted(o for o in origins if not o.startswith(('file:', 'data:', 'about:', 'chrome:'))), [])
finally:
    driver.quit()
