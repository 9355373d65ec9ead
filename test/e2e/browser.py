# SPDX-License-Identifier: Apache-2.0
"""TAP lines, and Chromium under a test's control: started when this is imported, with the flags of the command line that are its own."""
import argparse
import json
import os
import re
import sys
import time

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

CEILING_S = 120
parser = argparse.ArgumentParser()
for flag in ('browser', 'driver', 'profile', 'shots'):
    parser.add_argument('--' + flag, required=True)
args = parser.parse_known_args()[0]
count = int(os.environ.get('TAP_FIRST', 0))


def ok(name, condition, *detail):
    """condition: a value, or a function that is asked until it holds or the time is over; detail: what to print then, values or functions."""
    global count
    condition = poll(condition, bool)
    count += 1
    print('%s %d - %s' % ('ok' if condition else 'not ok', count, name), flush=True)
    if not condition:
        for line in '\n'.join(str(d() if callable(d) else d) for d in detail).splitlines():
            print('# ' + line)
    return condition


def poll(got, good):
    """got: a value, or a function that is called until its result is good or the time is over."""
    if not callable(got):
        return got
    end = time.monotonic() + CEILING_S
    while True:
        value = None
        try:
            value = got()
            if good(value):
                return value
        except (JavascriptException, StaleElementReferenceException):
            pass  # not there yet
        if time.monotonic() > end:
            return value
        time.sleep(0.1)


def same(name, got, want):
    got = poll(got, lambda value: value == want)
    return ok(name, got == want, 'got:  %r' % (got,), 'want: %r' % (want,))


def has(name, text, part):
    text = poll(text, lambda value: part in value)
    return ok(name, part in (text or ''), 'got: %r' % (text,), 'want in it: %r' % (part,))


# ---- the browser ----

# Before any script of the page: what must never happen is written down, and timers of the polling period can be seen.
WATCH = '''
window.violations = []; window.failures = [];
document.addEventListener('securitypolicyviolation', e => window.violations.push(e.violatedDirective + ' ' + e.blockedURI));
addEventListener('error', e => window.failures.push(String(e.message)));
addEventListener('unhandledrejection', e => window.failures.push(String(e.reason)));
window.polls = new Set();
const set = window.setTimeout, clear = window.clearTimeout;
window.setTimeout = (f, ms, ...rest) => { const id = set((...a) => { window.polls.delete(id); f(...a); }, ms, ...rest); if (ms === 5000) window.polls.add(id); return id; };
window.clearTimeout = id => { window.polls.delete(id); clear(id); };
'''


def browser_options(profile):
    options = webdriver.ChromeOptions()
    options.binary_location = args.browser
    for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--user-data-dir=' + profile, '--no-first-run', '--no-default-browser-check',
                     '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-proxy-server', '--hide-scrollbars', '--lang=en-GB',
                     '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--window-size=1440,900'):
        options.add_argument(argument)
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
    return options


def start_browser():
    """On a busy machine the driver gives up waiting for the browser. What it leaves behind has the profile: the next try takes another."""
    for attempt in range(3):
        try:
            driver = webdriver.Chrome(service=Service(args.driver), options=browser_options('%s-%d' % (args.profile, attempt)))
            break
        except WebDriverException as e:
            print('# the browser did not start: %s' % str(e).splitlines()[0], file=sys.stderr)
            if attempt == 2:
                raise
    driver.set_page_load_timeout(CEILING_S)
    driver.set_script_timeout(CEILING_S)
    driver.execute_cdp_cmd('Page.addScriptToEvaluateOnNewDocument', {'source': WATCH})
    return driver


driver = start_browser()
origins, console = set(), []


def js(expression, *values):
    return driver.execute_script('return ' + expression, *values)


def wait(what, condition, seconds=CEILING_S):
    """condition: JavaScript, or a function. True once it holds."""
    end = time.monotonic() + seconds
    while True:
        try:
            if js(condition) if isinstance(condition, str) else condition():
                return True
        except (JavascriptException, StaleElementReferenceException):
            pass  # not there yet
        if time.monotonic() > end:
            print('# never within %d s: %s' % (seconds, what))
            return False
        time.sleep(0.1)


def collect():
    for entry in driver.get_log('performance'):
        message = json.loads(entry['message'])['message']
        if message['method'] in ('Network.requestWillBeSent', 'Network.webSocketCreated'):
            origins.add('/'.join((message['params'].get('request') or message['params'])['url'].split('/')[:3]))
    for entry in driver.get_log('browser'):
        console.append(entry['message'])


def size(width, height):
    driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': False})
    wait('the page is %d wide' % width, 'innerWidth === %d' % width)


def prefer(scheme, motion='no-preference'):
    driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [{'name': 'prefers-color-scheme', 'value': scheme}, {'name': 'prefers-reduced-motion', 'value': motion}]})
    wait(scheme, "matchMedia('(prefers-color-scheme: %s)').matches && matchMedia('(prefers-reduced-motion: %s)').matches" % (scheme, motion))


def await_layout():
    """Two frames later: what was asked for is laid out."""
    driver.execute_async_script('const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))')


def shot(name):
    await_layout()
    driver.save_screenshot(os.path.join(args.shots, name + '.png'))


def load(how, *what):
    """A network interface that another program adds or removes interrupts what Chromium is loading."""
    for attempt in range(5):
        try:
            return how(*what)
        except WebDriverException as e:
            if 'ERR_NETWORK_CHANGED' not in str(e) or attempt == 4:
                raise


def visit(url):
    collect()
    driver.get('about:blank')  # a change of the fragment alone would load nothing
    load(driver.get, url)


def refresh():
    load(driver.refresh)


def names():
    return js("[...document.querySelectorAll('#rows .open')].map(b => b.textContent)")


def shows(*wanted):
    return wait('the rows are ' + ' '.join(wanted), lambda: names() == list(wanted))


def cell(name, column):
    return js("(() => { const b = [...document.querySelectorAll('#rows .open')].find(b => b.textContent === arguments[0]); return b ? b.closest('tr').querySelector('.x-' + arguments[1]).innerText : ''; }).apply(null, arguments)", name, column)


def press(*keys):
    chain = ActionChains(driver)
    for key in keys:
        chain.send_keys(key)
    chain.perform()


def press_shift_tab():
    ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()


focused = "(() => { const a = document.activeElement; return a.id || a.dataset.state || a.textContent; })()"

# What is too faint: texts below 4.5 (3 when large) against what is behind them, lines and marks that carry meaning below 3.
# Nothing while a row that has changed fades: asked again.
CONTRAST = r'''
if (document.getAnimations().some(a => a.playState !== 'finished')) return null;
const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return { rgb: m.slice(0, 3), a: m.length > 3 ? m[3] : 1 }; };
const lum = rgb => { const [r, g, b] = rgb.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.a === 1) return c.rgb; if (c.a > 0) throw new Error('half transparent: ' + e.className); } return [255, 255, 255]; };
const seen = e => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && e.getClientRects().length > 0;
const faint = []; let texts = 0, marks = 0;
const hold = (what, colour, e, least) => { if (!/\d/.test(colour)) { faint.push(what + ' has no colour: ' + colour); return; } const r = ratio(parse(colour).rgb, behind(e)); if (r < least) faint.push(what + ' ' + r.toFixed(2) + ' ' + colour + ' on ' + behind(e)); };
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n; (n = walker.nextNode());) {
  const e = n.parentElement;
  if (!n.textContent.trim() || !seen(e) || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(e.tagName)) continue;
  const s = getComputedStyle(e), px = parseFloat(s.fontSize), large = px >= 24 || px >= 18.66 && Number(s.fontWeight) >= 700;
  texts++;
  hold(JSON.stringify(n.textContent.trim().slice(0, 30)), e instanceof SVGElement ? s.fill : s.color, e, large ? 3 : 4.5);
}
for (const e of document.querySelectorAll('input')) if (seen(e)) { hold('placeholder', getComputedStyle(e, '::placeholder').color, e, 4.5); hold('edge of a field', getComputedStyle(e).borderTopColor, e.parentElement, 3); }
for (const e of document.querySelectorAll('.p-now, .p-want, .p-limit, .p-dot, .r-want, .r-min, .icon .s, .series .line, .series .point')) if (seen(e.closest('svg'))) { marks++; hold(e.getAttribute('class'), getComputedStyle(e).stroke, e.closest('svg').parentElement, 3); }
for (const e of document.querySelectorAll('.r-fill, .icon path:not(.s)')) if (seen(e.closest('svg')) && getComputedStyle(e.closest('svg')).visibility === 'visible') { marks++; hold(e.getAttribute('class') || 'icon', getComputedStyle(e).fill, e.closest('svg').parentElement, 3); }
return { faint, texts, marks };
'''


def contrast(what, least_texts, least_marks=0):
    """In the light and in the dark."""
    for scheme in ('light', 'dark'):
        prefer(scheme)
        await_layout()
        good = lambda f: f and not f['faint'] and f['texts'] >= least_texts and f['marks'] >= least_marks  # noqa: E731
        found = poll(lambda: driver.execute_script(CONTRAST), good)
        ok('%s, %s: every text has a contrast of 4.5, every mark of 3 (WCAG AA)' % (what, scheme), good(found), json.dumps(found, indent=1))
        shot(re.sub('[^a-z]+', '-', what) + '-' + scheme)
    prefer('light')


def no_sideways(what):
    await_layout()
    got = poll(lambda: js('[document.documentElement.scrollWidth, innerWidth]'), lambda value: value[0] <= value[1])
    ok('%s: nothing has to be scrolled sideways at %d px' % (what, got[1]), got[0] <= got[1], got)
