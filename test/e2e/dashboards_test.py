#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The browser's half of run-dashboards: prints TAP, numbered on from $TAP_FIRST, and takes a picture of each dashboard."""
import argparse
import base64
import os

from browser import await_layout, collect, console, driver, js, ok, origins, same, size, visit

parser = argparse.ArgumentParser()
parser.add_argument('--page', required=True)
parser.add_argument('--panels', type=int, required=True)
parser.add_argument('--shots', required=True)
args = parser.parse_known_args()[0]

try:
    size(1440, 900)
    visit('file://' + args.page)
    same('every panel of the dashboards is on the page', js("document.querySelectorAll('.panel').length"), args.panels)
    same('no panel is empty', js("[...document.querySelectorAll('.panel.empty h3')].map(h => h.textContent).join(', ')"), '')
    same('panels do not overlap', js('''(() => {
      const boxes = [...document.querySelectorAll('.panel')].map(p => [p.querySelector('h3').textContent, p.getBoundingClientRect()]);
      return boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([, y]) => x.left < y.right && y.left < x.right && x.top < y.bottom && y.top < x.bottom).map(([b]) => a + ' / ' + b)).join(', ');
    })()'''), '')
    same('every drawing has lines, bars or cells', js('''[...document.querySelectorAll('.panel svg')].filter(s => !s.querySelector('polyline[points*=","], circle, rect, line:not(.grid):not(.threshold)'))
      .map(s => s.closest('.panel').querySelector('h3').textContent).join(', ')'''), '')
    same('no number is not a number', js("[...document.querySelectorAll('.panel')].filter(p => /NaN|undefined/.test(p.innerText)).map(p => p.querySelector('h3').textContent).join(', ')"), '')
    for board in js("[...document.querySelectorAll('h1')].map(h => h.id)"):
        await_layout()
        box = js("(() => { const r = document.getElementById(arguments[0]).nextElementSibling.nextElementSibling.getBoundingClientRect(); return [r.top + scrollY, r.height]; }).apply(null, arguments)", board)
        clip = {'x': 0, 'y': box[0] - 50, 'width': 1440, 'height': min(box[1] + 60, 9000), 'scale': 1}
        data = driver.execute_cdp_cmd('Page.captureScreenshot', {'captureBeyondViewport': True, 'clip': clip})['data']
        with open(os.path.join(args.shots, board + '.png'), 'wb') as f:
            f.write(base64.b64decode(data))
    collect()
    same('the page asks no server', sorted(o for o in origins if not o.startswith(('file:', 'about:', 'data:', 'chrome:'))), [])
    ok('the console is empty', not console, console)
finally:
    driver.quit()
