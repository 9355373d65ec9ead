#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics of the cluster that the pages describe: an LLM service `llm` in the namespace serving, four pods with an H100
each, a pod of llama and a training job of four ranks in the namespace ml, and two GPUs that nothing uses. Every value is a
function of the time, so that the history and the live page fit together.

    metrics.py history HOURS STEP   prints the samples of the last hours as OpenMetrics, without the line of its end
    metrics.py serve ADDRESS PORT   serves http://ADDRESS:PORT/metrics
"""
import http.server
import math
import sys
import time

DAY_S = 86400
STARTED = (int(time.time()) // DAY_S - 30) * DAY_S  # counters start at 0 here
MODEL = 'NVIDIA H100 80GB HBM3'
LLM = ['llm-%d' % i for i in range(4)]
PODS = [('serving', pod) for pod in LLM] + [('serving', 'llama-0')] + [('ml', 'bert-%d' % i) for i in range(4)]
PROMPT, OUTPUT = 1000, 250  # tokens of a request


def labels(**pairs):
    pairs = {'job': 'world', 'instance': 'world', **pairs}  # else a scrape sets them, and the history is another series
    return '{' + ','.join('%s="%s"' % p for p in pairs.items()) + '}'


def load(t):
    """Tokens per second of the service: a day with a peak at 14:00."""
    return 2600 + 1200 * math.cos(2 * math.pi * (t - 14 * 3600) / DAY_S)


def tokens(t):
    """The integral of load() since STARTED."""
    angle = 2 * math.pi / DAY_S
    phase = 14 * 3600
    return 2600 * (t - STARTED) + 1200 / angle * (math.sin(angle * (t - phase)) - math.sin(angle * (STARTED - phase)))


def gpu_samples(t):
    busy = load(t) / 900 / 4
    for n in range(len(PODS) + 2):
        where = dict(gpu=n % 8, UUID='GPU-%08d-0000-0000-0000-000000000000' % n, device='nvidia%d' % (n % 8), modelName=MODEL,
                     Hostname='node%d' % (n // 8), job='gpuscale-exporter/gpuscale-exporter', namespace='gpuscale-exporter', pod='exporter-%d' % (n // 8))
        sm = 0.0
        if n < len(PODS):
            where.update(exported_namespace=PODS[n][0], exported_pod=PODS[n][1], exported_container='main')
            sm = min(1, busy) if PODS[n][0] == 'serving' else 0.8
        values = {
            'DCGM_FI_DEV_GPU_UTIL': 100 * math.ceil(sm), 'DCGM_FI_PROF_SM_ACTIVE': sm, 'DCGM_FI_PROF_GR_ENGINE_ACTIVE': sm, 'DCGM_FI_PROF_DRAM_ACTIVE': sm / 2,
            'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE': sm / 3, 'DCGM_FI_DEV_FB_USED': 60000 if sm else 500, 'DCGM_FI_DEV_FB_FREE': 20000 if sm else 79500,
            'DCGM_FI_DEV_GPU_TEMP': 40 + 30 * sm, 'DCGM_FI_DEV_POWER_USAGE': 100 + 500 * sm, 'DCGM_FI_DEV_SM_CLOCK': 1700, 'DCGM_FI_DEV_XID_ERRORS': 0,
            'gpuscale_gpu_up': 1}
        for name, value in values.items():
            yield name, labels(**where), value


def samples(t):
    yield from gpu_samples(t)
    for pod in LLM:
        where = labels(namespace='serving', pod=pod, job='llm')
        done = tokens(t) / len(LLM)
        requests = done / (PROMPT + OUTPUT)
        for name, value in {'prompt_tokens_total': done * PROMPT / (PROMPT + OUTPUT), 'generation_tokens_total': done * OUTPUT / (PROMPT + OUTPUT),
                            'request_prompt_tokens_sum': requests * PROMPT, 'request_prompt_tokens_count': requests,
                            'request_generation_tokens_sum': requests * OUTPUT, 'num_requests_waiting': 0, 'num_requests_running': load(t) / 100}.items():
            yield 'vllm:' + name, where, value
    for name, replicas in (('llm', 4), ('llama', 1)):
        where = labels(namespace='serving', deployment=name, job='kube-state-metrics')
        yield 'kube_deployment_spec_replicas', where, replicas
        yield 'kube_deployment_status_replicas_ready', where, replicas
    where = dict(namespace='serving', pod='llama-0', container='main')
    yield 'container_cpu_usage_seconds_total', labels(**where), 0.5 * (t - STARTED)
    yield 'kube_pod_container_resource_requests', labels(resource='cpu', **where), 1


def page(t, stamp):
    by_name = {}
    for name, where, value in samples(t):
        by_name.setdefault(name, []).append('%s%s %.9g%s\n' % (name, where, value, ' %d' % t if stamp else ''))
    return by_name


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ''.join(line for lines in page(time.time(), False).values() for line in lines).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'text/plain; version=0.0.4')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


if sys.argv[1] == 'serve':
    http.server.ThreadingHTTPServer((sys.argv[2], int(sys.argv[3])), Handler).serve_forever()
else:
    hours, step = float(sys.argv[2]), int(sys.argv[3])
    now = int(time.time())
    families = {}
    for t in range(now - int(3600 * hours), now, step):
        for name, lines in page(t, True).items():
            families.setdefault(name, []).extend(lines)
    for name, lines in families.items():
        sys.stdout.write('# TYPE %s unknown\n' % name)
        sys.stdout.writelines(lines)
