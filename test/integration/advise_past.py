# SPDX-License-Identifier: Apache-2.0
# Writes the past of a cluster as OpenMetrics, for run-advise: workloads of every engine, with their pods, GPUs and
# replicas. Workload i of `fleet-..` has the demand of the first one; every other one has no metrics but its GPUs.
#   advise_past.py END_SECONDS HOURS STEP_SECONDS FLEET
import math, sys

end, hours, step, fleet = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
start = end - int(hours * 3600)
times = range(start, end + 1, step)
metrics = {}


def add(metric, labels, values):
    metrics.setdefault(metric, []).append((','.join('%s="%s"' % l for l in labels.items()), values))


def load(t):
    """Replicas' worth of work: a peak of two hours in four, little in between. The phase is that of the start, not of the clock."""
    phase = ((t - start) % 14400) / 14400
    return 0.4 + 5.2 * max(0.0, math.sin(2 * math.pi * phase)) ** 2 if phase < 0.5 else 0.4


def total(rate):
    """A counter with this rate at each time."""
    values, sum = [], 0.0
    for t in times:
        sum += rate(t) * step
        values.append(sum)
    return values


def workload(kind, namespace, name, n, engine, exported=False, busy=None, model='NVIDIA H100 80GB HBM3'):
    label = {'Deployment': 'deployment', 'StatefulSet': 'statefulset'}.get(kind)
    spec, ready = {'Deployment': ('kube_deployment_spec_replicas', 'kube_deployment_status_replicas_ready'),
                   'StatefulSet': ('kube_statefulset_replicas', 'kube_statefulset_status_replicas_ready')}.get(kind, (None, None))
    if label:
        for metric in spec, ready:
            add(metric, {'namespace': namespace, label: name}, [n] * len(times))
    for i in range(n):
        pod = {'Deployment': '%s-6d4cf56db6-abcd%d' % (name, i), 'StatefulSet': '%s-%d' % (name, i)}.get(kind, '%s-x%d' % (name, i))
        own = {'namespace': namespace, 'pod': pod}
        other = {'namespace': 'monitoring', 'pod': 'scraper-0', 'exported_namespace': namespace, 'exported_pod': pod}
        labels = other if exported else own
        gpu = dict(UUID='GPU-%s-%s-%d' % (namespace, name, i), modelName=model, **labels)
        use = busy or (lambda t: load(t) / n)
        share = [min(1.0, use(t)) for t in times]
        add('DCGM_FI_DEV_FB_USED', gpu, [1000] * len(times))
        add('DCGM_FI_DEV_GPU_UTIL', gpu, [100 * s for s in share])
        if engine != 'none':
            add('DCGM_FI_PROF_SM_ACTIVE', gpu, [0.8 * s for s in share])
        rate = lambda t: load(t) / n
        if engine == 'vllm':
            add('vllm:num_requests_waiting', labels, [0] * len(times))
            add('vllm:num_requests_running', labels, [20 * rate(t) for t in times])
            add('vllm:prompt_tokens_total', labels, total(lambda t: 600 * rate(t)))
            add('vllm:generation_tokens_total', labels, total(lambda t: 400 * rate(t)))
            add('vllm:request_queue_time_seconds_count', labels, total(rate))
            add('vllm:request_queue_time_seconds_bucket', dict(labels, le='10.0'), total(lambda t: 0.97 * rate(t)))
            add('vllm:request_success_total', dict(labels, finished_reason='stop'), total(rate))
        elif engine == 'sglang':
            for rank in 0, 1:
                add('sglang:num_queue_reqs', dict(labels, tp_rank=rank), [0] * len(times))
                add('sglang:num_running_reqs', dict(labels, tp_rank=rank), [20 * rate(t) for t in times])
            add('sglang:prompt_tokens_total', labels, total(lambda t: 600 * rate(t)))
            add('sglang:generation_tokens_total', labels, total(lambda t: 400 * rate(t)))
            add('sglang:num_requests_total', labels, total(rate))
        elif engine == 'triton':
            add('nv_inference_pending_request_count', dict(labels, model='m'), [0] * len(times))
            add('nv_inference_queue_duration_us', dict(labels, model='m'), total(lambda t: 100 * rate(t)))
            add('nv_inference_compute_infer_duration_us', dict(labels, model='m'), total(lambda t: 1e6 * rate(t)))
            add('nv_inference_request_success', dict(labels, model='m'), total(lambda t: 20 * rate(t)))
        elif engine == 'tgi':
            add('tgi_queue_size', labels, [0] * len(times))
            add('tgi_request_input_length_sum', labels, total(lambda t: 600 * rate(t)))
            add('tgi_request_generated_tokens_sum', labels, total(lambda t: 400 * rate(t)))
            add('tgi_request_generated_tokens_count', labels, total(rate))


if fleet:
    for i in range(fleet):
        workload('Deployment', 'fleet', 'fleet-%d' % i, 2, 'vllm' if i % 2 else 'none')
else:
    workload('Deployment', 'serving', 'llama', 8, 'vllm')
    workload('Deployment', 'serving', 'chat', 6, 'vllm', exported=True)
    workload('Deployment', 'serving', 'sgl', 6, 'sglang')
    workload('Deployment', 'serving', 'vision', 6, 'triton')
    workload('Deployment', 'serving', 'tgi', 6, 'tgi')
    workload('StatefulSet', 'serving', 'embed', 6, 'gpu', exported=True)
    workload('Deployment', 'serving', 'full', 2, 'gpu', busy=lambda t: 0.95)
    workload('Deployment', 'serving', 'mute', 3, 'none', busy=lambda t: 0)
    workload('Job', 'batch', 'train', 1, 'none', model='NVIDIA X1')
for metric, series in metrics.items():
    kind = 'unknown' if metric.endswith(('_us', '_sum', '_count', '_success', '_bucket')) else 'counter' if metric.endswith('_total') else 'gauge'
    print('# TYPE %s %s' % (metric[:-6] if kind == 'counter' else metric, kind))
    for labels, values in series:
        for t, v in zip(times, values):
            print('%s{%s} %.10g %d' % (metric, labels, v, t))
