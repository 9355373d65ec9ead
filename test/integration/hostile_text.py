# SPDX-License-Identifier: Apache-2.0
# Runs every command of gpuscale in every format that it has, and every page of the controller and the exporter, on input
# whose names, labels and messages are hostile, and judges what comes out. Prints `ok NAME` or `not ok NAME` per case, and
# details after a tab. The commands come from `gpuscale help` and the formats from `gpuscale COMMAND --help`: a command
# or a format without a case is a failure.
#   hostile_text.py BUILD_OUTPUT WORK_FOLDER ROOT
import csv, io, json, os, pty, re, subprocess, sys, threading, time, unicodedata, urllib.parse, urllib.request
import http.server
import xml.dom.minidom

out, work, root = sys.argv[1:4]
golden = root + '/test/integration/golden'
gpuscale, exporter = out + '/gpuscale', out + '/gpuscale-exporter'
MARK = 'M4RK'
# Ends with a formula and starts with none; the second is the other way round.
HOSTILE = MARK + '\x1b]8;;http://e\x1b\\\x07\x9b31m\x7f\u202e\u2066\u200b\u061c\u2028\r\nFORGED,7,8\tx"\'</script><script>x()</script>&<b>=1'
FORMULA = '=HYPERLINK("http://%s","x")' % MARK
NAMES = [HOSTILE, FORMULA, '+' + MARK, '-' + MARK + ',y', '@' + MARK]

failures = 0


def report(name, *details):
    global failures
    failures += bool(details)
    print(('not ok ' if details else 'ok ') + name + ''.join('\t' + repr(d)[:300] for d in details), flush=True)


# ---- judging ----

def is_unsafe(c):
    cp = ord(c)
    return (cp < 0x20 and c not in '\n\t') or 0x7f <= cp <= 0x9f or cp in (0x061c, 0xfeff, 0x2028, 0x2029) or \
        0x200b <= cp <= 0x200f or 0x202a <= cp <= 0x202e or 0x2060 <= cp <= 0x206f or unicodedata.category(c) in ('Cc', 'Cf', 'Cs') and c not in '\n\t'


def judge_text(data, format='table'):
    """What must hold of any output: no character that controls a terminal, and no line of the attacker's own. In markup, a line end is a blank."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        return ['not UTF-8: %r' % data[max(0, e.start - 30):e.start + 10]]
    bad = [i for i, c in enumerate(text) if is_unsafe(c)]
    found = ['raw %r in %r' % (text[i], text[max(0, i - 40):i + 10]) for i in bad[:1]]
    if format not in ('svg', 'html', 'xml') and re.search(r'^\s*FORGED', text, re.M):
        found.append('a forged line')
    return found


def judge_csv(data):
    rows = list(csv.reader(io.StringIO(data.decode(), newline='')))
    found = ['row %d has %d cells, the head has %d' % (i, len(r), len(rows[0])) for i, r in enumerate(rows) if len(r) != len(rows[0])][:1]
    number = re.compile(r'[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|Inf)$')
    return found + ['formula %r' % c for r in rows for c in r if c.lstrip()[:1] in tuple('=+-@\t\r') and c and not number.match(c)][:1]


def judge_json(data):
    for line in [data.decode()] if data.lstrip()[:1] in b'{[' and not re.match(rb'\{.*\}\n\{', data) else data.decode().splitlines():
        try:
            json.loads(line)
        except ValueError as e:
            return ['not JSON: %s in %r' % (e, line[:200])]
    return []


def judge_markup(data):
    text = data.decode()
    try:
        xml.dom.minidom.parseString(data)
    except Exception as e:
        return ['not well-formed: %s' % e]
    return ['an element of the attacker'] if '<b>=1' in text or '<script>x()' in text else []


def judge_exposition(data):
    line = re.compile(r'(#.*|[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\n"])*",?)*\})? [^ ]+( [0-9.]+)?( # .*)?|)$')
    return ['not an exposition: %r' % l for l in data.decode().splitlines() if not line.match(l)][:1]


JUDGES = {'csv': judge_csv, 'json': judge_json, 'sarif': judge_json, 'svg': judge_markup, 'html': judge_markup, 'xml': judge_markup, 'prom': judge_exposition}
covered = {}


def case(name, argv, format='table', want_mark=True, stdin=None, files=(), env=None, command=None):
    """Runs one command. `files` are what it writes: (path, format). The mark must be in an output: the hostile text came through."""
    covered.setdefault(command or argv[0], set()).add(format)
    program = [gpuscale] if not command else [exporter]
    p = subprocess.run(['timeout', '60'] + program + argv, input=stdin or b'', capture_output=True, env=dict(os.environ, **(env or {})))
    found = judge_text(p.stdout, format) + ['stderr: ' + f for f in judge_text(p.stderr)]
    outputs = [p.stdout, p.stderr]
    if format in JUDGES and p.stdout and not found:
        found += JUDGES[format](p.stdout)
    for path, kind in files:
        data = open(path, 'rb').read() if os.path.exists(path) else b''
        outputs.append(data)
        found += (['%s is not written' % path] if not data else judge_text(data, kind)) or JUDGES[kind](data)
    if want_mark and not any(MARK.encode() in o for o in (outputs[:1] if want_mark == 'report' else outputs)):
        found.append('the hostile text is in no output: %r %r' % (p.stdout[:200], p.stderr[:300]))
    if p.returncode < 0 or p.returncode in (124, 134, 139):
        found.append('exit %d' % p.returncode)
    report(name, *found)
    return p


def terminal_case(name, argv, env=None):
    """The same on a terminal, where colours and a line of progress are the program's own."""
    ours, theirs = pty.openpty()
    p = subprocess.Popen(['timeout', '60', gpuscale] + argv, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=dict(os.environ, TERM='xterm', **(env or {})))
    os.close(theirs)
    data = b''
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            piece = b''
        if not piece:
            break
        data += piece
    p.wait()
    os.close(ours)
    data = re.sub(rb'\r\x1b\[K|\x1b\[[0-9;]*m', b'', data.replace(b'\r\n', b'\n'))
    found = judge_text(data)
    report(name + ', on a terminal', *found + ([] if MARK.encode() in data else ['the hostile text is in no output: %r' % data[:300]]))


# ---- a Prometheus that lies ----

LABELS = '''namespace pod container exported_namespace exported_pod exported_container wl_namespace wl_pod wl_kind wl_owner workload
modelName UUID Hostname instance training_job rank policy job GPU_I_ID GPU_I_PROFILE label_team team target verdict deployment owner owner_kind'''.split()


class Prometheus(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *a):
        pass

    def answer(self, status, body, kind='application/json'):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        url = urllib.parse.urlparse(self.path)
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers.get('Content-Length') or 0)).decode() or url.query)
        mode, path = url.path.split('/', 2)[1], url.path.split('/', 2)[2]
        if mode == 'error':
            self.answer(422, json.dumps({'status': 'error', 'errorType': 'execution ' + HOSTILE, 'error': HOSTILE}))
        elif mode == 'page':
            self.answer(503, HOSTILE, 'text/html')
        elif path.endswith('/query'):
            at = float(form.get('time', [time.time()])[0])
            self.answer(200, json.dumps({'status': 'success', 'warnings': [HOSTILE] if mode == 'warning' else [], 'data': {'resultType': 'vector', 'result': [
                {'metric': labels, 'value': [at, self.value(form)]} for labels in self.series(mode)]}}))
        elif path.endswith('/query_range'):
            start, end, step = (float(form[k][0].rstrip('s')) for k in ('start', 'end', 'step'))
            self.answer(200, json.dumps({'status': 'success', 'warnings': [HOSTILE] if mode == 'warning' else [], 'data': {'resultType': 'matrix', 'result': [
                {'metric': labels, 'values': [[start + i * step, self.value(form)] for i in range(int((end - start) / step) + 1)]} for labels in self.series(mode)]}}))
        elif path.endswith('buildinfo'):
            self.answer(200, json.dumps({'status': 'success', 'data': {'version': HOSTILE}}))
        else:
            self.answer(200, json.dumps({'status': 'success', 'data': [HOSTILE]}))

    do_GET = do_POST

    def value(self, form):
        return str(time.time() - 3600 * 20) if 'timestamp(' in form['query'][0] else '3600'

    def series(self, mode):
        return [dict({k: n for k in LABELS}, __name__='up') for n in NAMES]


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Prometheus)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
url = 'http://127.0.0.1:%d' % server.server_port
liar, warning, error, page = (['--prometheus', url + '/' + m] for m in ('many', 'warning', 'error', 'page'))

# ---- files ----

os.chdir(work)
POLICY = open(golden + '/backtest/policy.yaml').read()


def write(name, text):
    with open(name, 'w') as f:
        f.write(text)
    return name


def quoted(s):  # YAML 1.2 takes JSON
    return json.dumps(s)


policy = write('p.yaml', POLICY)
bad_policy = write('bad.yaml', POLICY.replace('llm', quoted(HOSTILE), 1).replace('avg(utilization)', quoted('avg(x{a="' + HOSTILE)).replace('staleAfter', quoted(HOSTILE)))
bad_name = HOSTILE.replace('/', '_') + '.yaml'
write(bad_name, POLICY.replace('maxReplicas: 12', 'maxReplicas: ' + quoted(HOSTILE)))
query_policy = write('q.yaml', POLICY.replace('avg(utilization)', quoted('avg(utilization{a="' + MARK + '\u202e"})')))


def formats_of(command):
    text = subprocess.run([gpuscale, command, '--help'], capture_output=True, text=True).stdout
    found = re.search(r'-o, --output=FORMAT\s+((?:.|\n)*?)(?=\n\s+--?[a-z]|\n\n)', text)
    words = re.findall(r'table|wide|json|yaml|name|csv|svg|text|sarif|github', re.sub(r'\(.*', '', found.group(1), flags=re.S)) if found else []
    return list(dict.fromkeys(words)) or ['table']


def each_format(command, argv, suffix='', unmarked=(), want_mark=True, **more):
    for f in formats_of(command):
        case('%s -o %s%s' % (command, f, suffix), [command] + argv + (['-o', f] if formats_of(command) != ['table'] else []),
             format=f, want_mark=want_mark and f not in unmarked, **more)


def run_offline():
    each_format('cost', liar + ['--since', '2h', '--by', 'model'], want_mark='report')
    each_format('cost', liar + ['--since', '2h', '--by', 'label=team'], suffix=' by a label', want_mark='report')
    each_format('idle', liar + ['-A', '--lookback', '4h', '--for', '5m'], want_mark='report')
    each_format('diagnose', liar + ['-A'], want_mark='report')
    each_format('advise', liar + ['-A', '--since', '2h'], want_mark=False)
    terminal_case('cost', ['cost', '--since', '14h', '--by', 'model'] + liar)
    terminal_case('idle', ['idle', '-A', '--lookback', '4h', '--for', '5m'] + liar)
    terminal_case('diagnose', ['diagnose', '-A'] + liar)
    for command in ('cost', 'idle', 'diagnose', 'advise'):
        for argv, what in ((error, 'error'), (page, 'page'), (warning, 'warning')):
            case('%s: server that answers with: %s' % (command, what), [command] + argv)
    each_format('detect', ['--job', 'x', '-n', 'ml'] + liar, suffix=' of live jobs', want_mark=False)
    case('detect: server that answers with an error', ['detect', '--pods', '.*', '-n', 'ml'] + error)
    steps = ''.join(json.dumps({'time': t, 'job': HOSTILE, 'step': {(HOSTILE if r == 5 else str(r)): (3 if r == 5 and t > 1800 else 1 + r / 1000) for r in range(8)}}) + '\n' for t in range(0, 3600, 10))
    case('detect: events of hostile ranks', ['detect'], format='json', stdin=steps.encode())
    covered['detect'].add('table')
    case('detect: field that is unknown', ['detect'], stdin=json.dumps({'time': 0, HOSTILE: {'0': 1}}).encode())
    each_format('plan', ['-f', query_policy, '--replicas', '2'] + error, unmarked=['name'])
    each_format('plan', ['-f', policy, '--replicas', '2'] + liar, suffix=' of many series', want_mark=False)
    case('plan: file of policies that is wrong', ['plan', '-f', bad_policy, '--replicas', '2'] + liar)
    each_format('check', [bad_policy], suffix=' of a wrong file')
    case('check: file with a hostile name', ['check', bad_name])
    case('check: source that answers with an error', ['check', policy] + error)
    case('check: source that answers with a page', ['check', policy] + page)
    case('check: source with many series', ['check', policy] + liar, want_mark=False)
    test = open(root + '/examples/llama_test.yaml').read()
    write('llama.yaml', open(root + '/examples/llama.yaml').read())
    write('t_test.yaml', test.replace('a 30 s spike does not scale', quoted(HOSTILE)).replace('replicas: 2, action: None, reason: Desired', 'replicas: 3, action: None, reason: Desired', 1))
    for flags in ([], ['--diff'], ['-v'], ['--coverage']):
        case('test %s' % ' '.join(flags), ['test', 't_test.yaml', '--junit', 'junit.xml'] + flags, files=[('junit.xml', 'xml')])
    terminal_case('test', ['test', 't_test.yaml', '--diff', '-v'])
    terminal_case('backtest', ['backtest', '-f', policy, '--since', '1h'] + error)
    case('test: no test has a name', ['test', 't_test.yaml', '--run', MARK + '\x1b\u202e\n'])
    lines = json.dumps({HOSTILE: 1}) + '\n' + json.dumps({'time': 0, 'replicas': 1, 'signals': {HOSTILE: 1}}) + '\n' + HOSTILE + '\n'
    case('step', ['step', '-f', policy], format='json', stdin=lines.encode())
    covered['step'].add('table')
    write('pool.yaml', 'apiVersion: gpuscale.dev/v1alpha1\nkind: GPUPool\nmetadata: {name: h100}\nspec: {gpus: 8, members: [{namespace: serving}]}\n')
    case('grant', ['grant', '-f', 'pool.yaml', '--explain'], format='json', stdin=(json.dumps({'members': [{'name': HOSTILE, 'asked': 12}]}) + '\n' + json.dumps({HOSTILE: 1}) + '\n').encode())
    covered['grant'].add('table')
    case('spread', ['spread'], format='json', stdin=(json.dumps({'units': 4, 'variants': [{'name': HOSTILE, 'capacity': 1}]}) + '\n' + json.dumps({HOSTILE: 1}) + '\n').encode())
    covered['spread'].add('table')
    rows = open(golden + '/backtest/recording.csv').read()
    data = write(HOSTILE.replace('/', '_') + '.csv', rows)
    headed = write('head.csv', rows.replace('requests', re.sub('[,\r\n\"]', ' ', HOSTILE), 1))
    each_format('backtest', ['-f', policy, '--data', data, '--html', 'page.html', '--decisions', 'decisions'], files=[('page.html', 'html'), ('decisions', 'json')])
    case('backtest: recording with a hostile column', ['backtest', '-f', policy, '--data', headed, '--demand-column', HOSTILE])
    case('backtest: server that answers with an error', ['backtest', '-f', policy, '--since', '1h'] + error)
    case('backtest: server with many series', ['backtest', '-f', policy, '--since', '1h'] + liar, want_mark=False)
    case('backtest --sweep -o svg', ['backtest', '--sweep', '-f', policy, '--data', data, '-o', 'svg'], format='svg', want_mark=False)
    case('backtest: wrong recording', ['backtest', '-f', policy, '--data', write(HOSTILE.replace('/', '_') + '.txt', HOSTILE)])
    each_format('tune', ['-f', policy, '--data', data, '--patch', 'patched.yaml'], want_mark=False)
    case('tune: wrong recording', ['tune', '-f', policy, '--data', HOSTILE.replace('/', '_') + '.txt'])
    trace = json.loads(subprocess.check_output([root + '/scripts/bundle', 'show', golden + '/trace.bundle', 'streams.json']))
    for e in trace['traceEvents']:
        e['name'] = HOSTILE if e['name'] == 'gemm' else FORMULA if e['name'].startswith('Memcpy') else e['name'] + HOSTILE
    each_format('trace', [write('trace.json', json.dumps(trace))], unmarked=['svg'])
    case('trace: not a trace', ['trace', write(HOSTILE.replace('/', '_') + '.json', '{"traceEvents": [{"name": "' + HOSTILE)])
    events = [{'time': 0, 'type': 'node', 'node': HOSTILE, 'gpus': [HOSTILE], 'pods': []}, {'time': 1, 'type': 'event', 'node': HOSTILE, 'gpu': HOSTILE, 'xid': 79}, {HOSTILE: 1}]
    case('remediate --replay', ['remediate', '--replay', '-'], format='json', stdin='\n'.join(map(json.dumps, events)).encode())
    hpa = {'apiVersion': 'autoscaling/v2', 'kind': 'HorizontalPodAutoscaler', 'metadata': {'name': HOSTILE, 'namespace': HOSTILE}, 'spec': {'scaleTargetRef': {'kind': HOSTILE, 'name': HOSTILE},
           'maxReplicas': 3, 'metrics': [{'type': HOSTILE}, {'type': 'External', 'external': {'metric': {'name': HOSTILE, 'selector': {'matchLabels': {HOSTILE: HOSTILE}}}, 'target': {'type': 'Value', 'value': HOSTILE}}}]}}
    case('convert', ['convert', write('hpa.json', json.dumps(hpa))])
    case('convert: object of another kind', ['convert', write('x.json', json.dumps({'apiVersion': HOSTILE, 'kind': HOSTILE, 'metadata': {'name': HOSTILE}}))])
    case('explain', ['explain', 'spec.' + HOSTILE])
    each_format('crd', [], want_mark=False)
    case('completion', ['completion', 'bash'], want_mark=False)
    each_format('version', [], want_mark=False)
    for command in commands:
        case('%s: argument' % command, [command, HOSTILE], want_mark=command not in ('run', 'completion', 'pause', 'resume', 'describe', 'get', 'top', 'capacity', 'crd', 'diagnose'))
        case('%s: flag' % command, [command, '--' + MARK + HOSTILE])
        case('%s: short flag' % command, [command, '-\x1b' + MARK], want_mark=False)
    case('command that does not exist', [HOSTILE])


# ---- a cluster whose objects are hostile ----

def put(api, o):
    urllib.request.urlopen(urllib.request.Request(api + '/_fake/put', data=json.dumps(o).encode(), method='POST'), timeout=30).read()


def start(argv, log, pattern, env=None):
    p = subprocess.Popen(argv, stdout=open(log, 'wb'), stderr=subprocess.STDOUT, env=dict(os.environ, **(env or {})))
    for _ in range(600):
        found = re.search(pattern, open(log, errors='replace').read())
        if found:
            return p, found
        if p.poll() is not None:
            break
        time.sleep(0.05)
    return p, None


def fetch(address):
    try:
        return urllib.request.urlopen(address, timeout=30).read()
    except urllib.error.HTTPError as e:
        return e.read()


def fetch_when(address, wanted):
    for _ in range(300):
        try:
            data = fetch(address)
            if wanted in data:
                break
        except OSError:
            data = b''
        time.sleep(0.1)
    return data


def judge_page(name, data, kind=None, want_mark=True):
    found = judge_text(data) or (JUDGES[kind](data) if kind else [])
    if want_mark and MARK.encode() not in data:
        found.append('the hostile text is not on the page: %r' % data[:300])
    report(name, *found)


def autoscaler(name, **spec):
    stamp = '2026-01-05T09:00:00Z'
    condition = {'type': HOSTILE, 'status': 'True', 'reason': HOSTILE, 'message': HOSTILE, 'lastTransitionTime': stamp}
    return {'apiVersion': 'gpuscale.dev/v1alpha1', 'kind': 'GPUAutoscaler', 'metadata': {'name': name, 'namespace': 'default', 'generation': 2, 'creationTimestamp': stamp,
            'labels': {'team': HOSTILE, HOSTILE: FORMULA}, 'annotations': {'gpuscale.dev/paused': 'true', 'gpuscale.dev/paused-reason': HOSTILE, HOSTILE: HOSTILE}},
            'spec': dict({'scaleTargetRef': {'kind': 'Deployment', 'name': name}, 'maxReplicas': 4, 'gpus': {'perReplica': 1, 'model': 'H100'},
                          'signals': [{'name': 'q', 'query': 'sum(x{a="%s"})' % (MARK + '\u202e'), 'target': {'type': 'Value', 'value': '1'}}]}, **spec),
            'status': {'observedGeneration': 2, 'lastUpdateTime': stamp, 'currentReplicas': 1, 'desiredReplicas': 2, 'readyReplicas': 1, 'lastScaleTime': stamp, 'action': HOSTILE, 'reason': HOSTILE,
                       'message': HOSTILE, 'signalsSummary': HOSTILE, 'signals': [{'name': HOSTILE, 'value': HOSTILE, 'target': FORMULA, 'state': HOSTILE, 'reason': HOSTILE, 'sampleTime': stamp}],
                       'decisions': [{'time': stamp, 'action': 'ScaleUp', 'reason': 'AboveHighWatermark', 'from': 1, 'to': 2, 'message': HOSTILE}], 'conditions': [dict(condition), dict(condition, type='Ready', status='False')]}}


def run_cluster():
    p, found = start([out + '/fake-apiserver', '--keda', '--write-kubeconfig', 'kubeconfig'], 'api.log', r'listening on (\S+)')
    try:
        api = found.group(1)
        env = {'KUBECONFIG': work + '/kubeconfig'}
        put(api, autoscaler('p'))
        put(api, autoscaler('w', bogus=HOSTILE))
        fleet = autoscaler('fleet', scaleTargets={'selector': {}, 'seriesOf': {'label': 'deployment'}})
        del fleet['spec']['scaleTargetRef']
        fleet['status']['fleet'] = {'targets': 1, 'record': HOSTILE, 'worst': [{'target': 'default/p', 'state': HOSTILE, 'message': HOSTILE}, HOSTILE]}
        put(api, fleet)
        for kind, name in (('Deployment', 'p'), ('Deployment', 'w')):
            put(api, {'apiVersion': 'apps/v1', 'kind': kind, 'metadata': {'name': name, 'namespace': 'default', 'annotations': {HOSTILE: HOSTILE, 'gpuscale.dev/max-replicas': HOSTILE}}, 'spec': {'replicas': 1, 'selector': {'matchLabels': {'app': name}},
                      'template': {'metadata': {'labels': {'app': name}}, 'spec': {'containers': [{'name': 'c', 'resources': {'limits': {'nvidia.com/gpu': '1'}}}]}}}})
        put(api, {'apiVersion': 'gpuscale.dev/v1alpha1', 'kind': 'GPUPool', 'metadata': {'name': 'h100', 'uid': 'u-1'}, 'spec': {'gpus': 8, 'members': [{'namespace': 'default'}], HOSTILE: 1},
                  'status': {'gpus': 8, 'usedGPUs': 8, 'message': HOSTILE, 'members': [{'name': HOSTILE, 'requested': 8, 'granted': 2, 'gpus': 2, 'reason': HOSTILE, 'message': HOSTILE}]}})
        for n, name in enumerate(('n0', 'n1')):
            put(api, {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name, 'labels': {'nvidia.com/gpu.product': NAMES[n], 'pool': HOSTILE, HOSTILE: HOSTILE},
                      'annotations': {'gpuscale.dev/remediation': json.dumps({'phase': HOSTILE, 'fault': HOSTILE}), 'gpuscale.dev/gpu-fault': HOSTILE}},
                      'spec': {'taints': [{'key': HOSTILE, 'value': HOSTILE, 'effect': 'NoSchedule'}, {'key': 'gpuscale.dev/gpu-unhealthy', 'value': HOSTILE, 'effect': 'NoSchedule'}]},
                      'status': {'capacity': {'nvidia.com/gpu': '4', 'pods': '10', HOSTILE: HOSTILE}, 'allocatable': {'nvidia.com/gpu': '4', 'pods': '10'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}})
        for kind, name in (('GPUAutoscaler', 'p'), ('Node', 'n0')):
            put(api, {'apiVersion': 'v1', 'kind': 'Event', 'metadata': {'name': 'e.' + name.lower(), 'namespace': 'default'}, 'involvedObject': {'kind': kind, 'namespace': 'default', 'name': name}, 'reason': 'GPUFault' if kind == 'Node' else HOSTILE,
                      'type': 'Warning', 'message': HOSTILE, 'count': 1, 'source': {'component': 'gpuscale'}, 'reportingComponent': 'gpuscale-remediation', 'firstTimestamp': '2026-01-05T09:00:00Z', 'lastTimestamp': '2026-01-05T09:00:00Z'})
        each_format('get', [], env=env, want_mark=False)
        each_format('get', ['pools'], env=env, suffix=' pools', want_mark=False)
        case('get -o wide: mark', ['get', '-A', '-o', 'wide'], env=env, format='wide')
        case('get --targets', ['get', 'fleet', '--targets'], env=env)
        case('get remediations', ['get', 'remediations'], env=env, want_mark=False)
        terminal_case('get', ['get', '-A', '-o', 'wide'], env)
        terminal_case('describe', ['describe'], env)
        case('get: name', ['get', MARK + HOSTILE], env=env)
        for command in ('describe', 'top', 'capacity'):
            each_format(command, [], env=env, unmarked=['name'])
        put(api, {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': 'keda-operator', 'namespace': 'keda', 'annotations': {'gpuscale.dev/keda-replicas': HOSTILE}}, 'spec': {'replicas': 1}})
        put(api, {'apiVersion': 'keda.sh/v1alpha1', 'kind': 'ScaledObject', 'metadata': {'name': 'p', 'namespace': 'default'}, 'spec': {'scaleTargetRef': {'name': HOSTILE}, 'triggers': [{'type': HOSTILE, 'metadata': {}}]}})
        case('takeover', ['takeover', '--dry-run'], env=env)
        case('capacity --pool-label', ['capacity', '--pool-label', 'pool'], env=env)
        for command in ('pause', 'resume'):
            case(command, [command, 'w'] + (['--reason', HOSTILE] if command == 'pause' else []), env=env, want_mark=command == 'pause')
            case(command + ': name', [command, HOSTILE], env=env)
        each_format('plan', error, env=env, suffix=' of objects', want_mark=False)
        each_format('advise', liar + ['-A', '--since', '2h'], env=env, suffix=' of objects', want_mark=False)
        case('get: server that is none', ['get'], env={'KUBECONFIG': write('liar.kubeconfig', json.dumps({'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'x', 'contexts': [{'name': 'x', 'context': {'cluster': 'x', 'user': 'x'}}],
             'users': [{'name': 'x', 'user': {}}], 'clusters': [{'name': 'x', 'cluster': {'server': url + '/page'}}]}))}, want_mark=False)
        case('get: kubeconfig that is wrong', ['get'], env={'KUBECONFIG': write(HOSTILE.replace('/', '_') + '.conf', 'current-context: ' + quoted(HOSTILE))})
        run_controller(api)
    finally:
        p.terminate()
        p.wait()


def run_controller(api):
    """The loop, with the policies of the cluster and a source that answers with hostile errors: logs, pages, what it writes."""
    for format in ('text', 'json'):
        log = 'run-%s.log' % format
        p, found = start([gpuscale, 'run'] + error + ['--listen', '127.0.0.1:0', '--logging-format', format, '--leader-elect=false'], log, r'port"?[=:](\d+)',
                         {'KUBECONFIG': work + '/kubeconfig'})
        try:
            if not found:
                report('run: starts', open(log).read()[-600:])
                return
            base = 'http://127.0.0.1:' + found.group(1)
            overview = fetch_when(base + '/api/v1/overview', MARK.encode())
            if format == 'json':
                continue
            judge_page('page: overview', overview, 'json')
            for path, kind, mark in (('/', None, False), ('/metrics', 'prom', False), ('/debug/decisions', None, False), ('/readyz', None, False), ('/livez', None, False), ('/healthz', None, False), ('/version', None, False),
                                     ('/api/v1/policy?namespace=default&name=p', 'json', False), ('/api/v1/policy?name=' + urllib.parse.quote(HOSTILE), None, False), ('/' + urllib.parse.quote(HOSTILE), None, False)):
                judge_page('page: ' + path[:40], fetch(base + path), kind, mark)
            objects = fetch(api + '/apis/gpuscale.dev/v1alpha1/namespaces/default/gpuautoscalers')
            messages = [c.get('message', '') for o in json.loads(objects)['items'] for c in o.get('status', {}).get('conditions', [])]
            report('conditions that the controller writes', *[m for m in messages for f in judge_text(m.encode()) + (['newline'] if '\n' in m else []) if HOSTILE not in m][:1])
            events = json.loads(fetch(api + '/api/v1/namespaces/default/events'))['items']
            messages = [e['message'] for e in events if e['message'] != HOSTILE]
            report('Events that the controller writes', *[m for m in messages if judge_text(m.encode()) or '\n' in m][:1])
        finally:
            p.terminate()
            p.wait()
            data = open(log, 'rb').read()
            judge_page('log as %s' % format, data, 'json' if format == 'json' else None)
    covered.setdefault('run', set()).add('table')


def run_exporter():
    page = '\n'.join('DCGM_FI_DEV_GPU_TEMP{gpu="%d",UUID="%s",modelName="%s",Hostname="%s",namespace="%s",pod="%s",device="nvidia0",pci_bus_id="%s"} 40' %
                     ((i,) + tuple(n.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n') for n in [name] * 6)) for i, name in enumerate(NAMES)) + '\n'
    write('page.prom', page)
    for f in ('table', 'wide', 'json', 'jsonl', 'csv'):
        case('exporter top -o %s' % f, ['top', '--from', 'page.prom', '-o', f], format={'jsonl': 'json'}.get(f, f), command='exporter')
    for f in ('table', 'json', 'csv'):
        case('exporter list -o %s' % f, ['list', '--from', 'page.prom', '-o', f], format=f, command='exporter')
    for f in ('table', 'json'):
        case('exporter check -o %s' % f, ['check', '--from', 'page.prom', '-o', f], format=f, command='exporter', want_mark=False)
    case('exporter: page that is none', ['top', '--from', write('none.prom', HOSTILE + '\n')], command='exporter')
    case('exporter: flag', ['--' + HOSTILE], command='exporter')
    case('exporter: argument', [HOSTILE], command='exporter')
    case('exporter: counters file', ['--once', '--backend', 'mock', '-f', write('c.csv', 'DCGM_FI_' + HOSTILE.replace(',', ' ').replace('\n', ' ').replace('\r', ' ') + ', gauge, help\n')], command='exporter')
    script = write('mock.yaml', 'gpus: [{uuid: GPU-a, model: %s, namespace: ml, pod: %s}]\n' % (quoted(HOSTILE.replace('\n', ' ')), quoted(HOSTILE)))
    case('exporter --once', ['--once', '--backend', 'mock', '--mock-script', script], format='prom', command='exporter')
    os.makedirs('jobs', exist_ok=True)
    write('jobs/0', HOSTILE.replace('\n', ' ')[:40] + '\n')
    p, found = start([exporter, '--backend', 'mock', '--mock-script', script, '--hpc-job-mapping-dir', 'jobs', '--listen', '127.0.0.1:0'], 'exporter.log', r'port=(\d+)')
    try:
        base = 'http://127.0.0.1:' + found.group(1)
        judge_page('exporter: /metrics', fetch_when(base + '/metrics', MARK.encode()), 'prom')
        for path in ('/', '/health', '/' + urllib.parse.quote(HOSTILE)):
            judge_page('exporter: ' + path[:30], fetch(base + path), want_mark=False)
    finally:
        p.terminate()
        p.wait()
        judge_page('exporter: log', open('exporter.log', 'rb').read(), want_mark=False)


def run_page_script():
    """The status page shows the same characters as the programs do: its script, without a browser."""
    lines = re.findall(r'^const (?:UNSAFE|visible) = .*$', open(root + '/controller/serve/status_page.html').read(), re.M)
    try:
        p = subprocess.run(['node', '-e', '\n'.join(lines) + '\nconsole.log(JSON.stringify([...Array(0x110000).keys()].filter(c => (c < 0xd800 || c > 0xdfff) && visible(String.fromCodePoint(c)) !== String.fromCodePoint(c))));'
                            'console.log(visible(JSON.parse(process.argv[1])))', json.dumps(HOSTILE)], capture_output=True)
    except FileNotFoundError:
        print('ok page: its script # SKIP node is not installed')
        return
    if p.returncode:
        report('page: its script runs', p.stderr.decode()[-600:])
        return
    escaped, text = p.stdout.split(b'\n', 1)
    judge_page('page: text that its script shows', text.replace(b'\nFORGED', b''))
    listed = open(root + '/base/text.c').read().split('unsafe[] = {', 1)[1].split('};', 1)[0]
    want = {c for first, last in re.findall(r'\{(0x[0-9a-f]+|0), (0x[0-9a-f]+)\}', listed) for c in range(int(first, 16), int(last, 16) + 1)} - {9, 10}
    want |= {c for c in range(0xfdd0, 0xfdf0)} | {0xfffe, 0xffff}
    got = set(json.loads(escaped))
    report('page: its script knows the characters of base/text.c', *['%x' % c for c in sorted(want ^ got)][:5])


commands = re.findall(r'^  ([a-z]+)  ', subprocess.run([gpuscale, 'help'], capture_output=True, text=True).stdout, re.M)
run_offline()
run_cluster()
run_exporter()
run_page_script()
missing = [c for c in commands if c not in covered] + ['%s -o %s' % (c, f) for c in commands for f in formats_of(c) if f not in covered.get(c, ())]
report('every command has a case in every format', *missing)
sys.exit(failures > 0)
