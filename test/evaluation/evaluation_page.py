#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/evaluation.md and one self-contained HTML page from what run-evaluation measured.

evaluation_page.py RESULTS PAGE: RESULTS is the folder with measured.tsv, curve.tsv, slo.md, value.md, cost.txt and the series;
PAGE gets its blocks between "<!-- evaluation: NAME -->" and "<!-- end of evaluation -->". Exits with 1, and writes nothing, when
a figure is missing.
"""
import html
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import dashboard_page  # noqa: E402

# What is claimed | by whom | their figure | ours, with figures from measured.tsv | how it was obtained | where ours is worse, or what limits it
CLAIMS = (
    ("Mean utilisation of GPUs at work, with peaks and dips", "P", "about 72 %, peaks above 90 %, dips below 50 %",
     "{util_mean} % from the exporter, {util_rule} % from the recorded rule; peak {util_peak} %, dip {util_dip} %", "`examples/mock/paper.yaml`, scraped every 5 s",
     "The load is a script, so this shows that exporter, scrapes and rules measure it right, and nothing about a real workload."),
    ("Memory in use on 40 GB cards", "P", "20 to 28 GB, peaks above 35 GB", "{memory_p05_gib} to {memory_p90_gib} GiB (5th to 90th percentile), peak {memory_peak_gib} GiB, {memory_alerts} memory alerts",
     "the same script", "The peak is 89 % of the card: an alert at 90 % is silent in the paper's own example, and here."),
    ("Speed-up on eight GPUs", "P", "6.8 times, near linear up to four", "{speedup_8} times; growth stops at {trainer_replicas} replicas (`{trainer_reason}`)",
     "closed loop: a workload with the serial fraction 0.0252 (Amdahl), a policy with `guards.minMarginalGain` of 0.7",
     "The serial fraction is given, so the curve is not a measurement of real communication. What is measured: the guard finds the fraction from the throughput and stops at the eighth of sixteen permitted replicas."),
    ("False alerts, compared with bare thresholds", "P", "65 % fewer", "{alerts_reduction} % fewer ({alerts_naive} to {alerts_shipped} per noisy hour of one GPU; {alerts_reduction_range} % on {alert_seeds} hours); {alerts_breaches}",
     "`test/integration/run-alert-seeds {alert_seeds}`", "The hours are generated after operators' descriptions; no recording of a real node was available."),
    ("Time to detect: faults that end work", "P", "below 5 s", "{mttd_s} s on average, {mttd_worst_s} s at most, at the receiver", "`test/bench/run-bench mttd_s mttd_worst_s`; scrapes of 1 s (the fast lane)", "Needs a second scrape job of 14 samples per GPU and second."),
    ("Time to detect: slowdown heat, full memory", "P", "below 5 s", "{mttd_near_worst_s} s at most ({mttd_near_worst_s_note})", "`test/bench/run-bench mttd_near_worst_s`; the fast lane, two scrapes", "The temperature is the card's own limit (87 C on the mock), not 80 C."),
    ("Time to detect: above 80 C, memory above 90 %", "P", "below 5 s, of *sustained* breaches", "80 C: {heat_80_s} s; 90 %: {memory_90_s} s, at the receiver", "onset in the mock to the message of Alertmanager, scrapes of 5 s",
     "**Worse, on purpose**: a breach that has to last 5 minutes cannot be reported within 5 s. The paper's two statements exclude each other."),
    ("Time to detect: above 85 C, memory above 95 %", "P", "below 5 s", "85 C: {heat_85_s} s; 95 %: {memory_95_s} s, at the receiver", "the same; critical alerts need two scrapes", "**Worse** with scrapes of 5 s: two scrapes and an evaluation are 10 s on average."),
    ("Overhead of collection on the host", "P, U", "minimal; about 5 %", "{exporter_rss_mib} MiB, {exporter_scrape_us} us of CPU for a scrape of 8 GPUs, {exporter_cpu_percent} % of a core for 16 GPUs at scrapes of 5 s",
     "`test/bench/run-bench exporter_rss_mib exporter_scrape_us`; the world's exporter", "On this machine, which takes {machine_factor} times the reference's time, and with the mock: NVML itself adds memory and time."),
    ("Overhead on the work of the GPU", "P, U", "none; about 5 %", "not measured", "`scripts/gpu-validate --overhead` on a node with a GPU", "**Open**: no GPU was available to this run."),
    ("Overhead of control", "P", "no figure", "{controller_cpu_percent} % of a core for two policies at 5 s; {cpu_per_policy_us} us per policy and tick, {rss_500_mib} MiB for 500 policies", "`test/bench/run-bench cpu_per_policy_us rss_500_mib`; the world's controller", ""),
    ("Responsive scaling", "P", "near real time, no figure", "a step of 500 targets takes {step_500_ratio} times as long as 500 raw PATCHes", "`test/bench/run-bench step_500_ratio`", ""),
    ("A mix of training and inference on A100", "P", "PyTorch and TensorRT, no figure", "inference follows its demand between {llama_low} and {llama_high} replicas with {llama_changes} changes at {llama_util} % SM activity, at most {llama_backlog} units of work waiting; together with training {mix_util} % of the GPUs that are in use",
     "two workloads in one world, each with its policy, on a real API server", "The workloads are models of the mock; no PyTorch or TensorRT runs."),
    ("Baselines", "P", "none", "the tables below: HPA, KEDA, WPA, Knative, a fixed number", "`gpuscale backtest`, `make figures`", "On the SLO episode the best HPA in hindsight is cheaper."),
    ("Ablation", "P", "none", "each stage of three policies removed, on five recorded demands", "[ablation](evidence/ablation.md), `make figures`", "Several stages save nothing on several demands; the page names them."),
    ("Cost", "P, C", "none in the paper", "{value}", "`gpuscale backtest` on a recorded week, simulated", "Against the setting that was best in hindsight, which is not known in advance."),
)
SOURCES = {"P": "paper", "U": "utilisation guide", "C": "cloud guide", "O": "observability chapter"}


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return f.read()


def claims(figures):
    rows = ["| claim | source | its figure | gpuscale | how | limits, and where gpuscale is worse |", "|---|---|---|---|---|---|"]
    for what, who, theirs, ours, how, limits in CLAIMS:
        named = ", ".join(SOURCES[w] for w in who.split(", "))
        rows.append("| %s |" % " | ".join((what, named, theirs, ours.format_map(figures), how.format_map(figures), limits.format_map(figures))))
    return rows


def curve(points):
    one = points[0][1]
    rows = ["| replicas | throughput | speed-up | share of linear | what the last replica added | evaluations |", "|---:|---:|---:|---:|---:|---:|"]
    before = None
    for n, throughput, count in points:
        rows.append("| %d | %.2f | %.2f | %.0f %% | %s | %d |" % (n, throughput, throughput / one, 100 * throughput / one / n, "%.2f" % ((throughput - before) / one) if before else "1", count))
        before = throughput
    return rows


def plot(title, folder, name, unit, legend):
    """A chart of a stored range query."""
    series = [dict(s, name=dashboard_page.name_of(s["metric"], legend)) for s in json.loads(read(folder, name + ".json"))["data"]["result"]]
    panel = {"title": title, "fieldConfig": {"overrides": [], "defaults": {"unit": unit, "min": 0, "thresholds": {"steps": [{"value": None, "color": "green"}]}, "custom": {
        "stacking": {"mode": "none"}, "drawStyle": "line", "lineInterpolation": "stepAfter", "thresholdsStyle": {"mode": "off"}}}}}
    return "<figure><figcaption>%s</figcaption>%s</figure>" % (html.escape(title), dashboard_page.time_series(panel, series, 900, 230))


def plot_curve(points):
    """Speed-up by replicas, beside the straight line."""
    one, last_n = points[0][1], points[-1][0]
    scale = lambda n, s: "%.1f,%.1f" % (50 + 800 * n / last_n, 220 - 200 * s / last_n)  # noqa: E731
    marks = "".join('<circle r="4" fill="#3274d9" cx="%s" cy="%s"/>' % tuple(scale(n, t / one).split(",")) for n, t, _ in points)
    labels = "".join('<text x="%s" y="238" text-anchor="middle">%d</text>' % (scale(n, 0).split(",")[0], n) for n, _, _ in points)
    return ('<figure><figcaption>Speed-up by replicas (dashed: linear)</figcaption><svg width="900" height="245"><polyline fill="none" stroke="#8c959f" stroke-dasharray="5 4" points="%s %s"/>'
            '<polyline fill="none" stroke="#3274d9" stroke-width="2" points="%s"/>%s%s</svg></figure>') % (
                scale(0, 0), scale(last_n, last_n), " ".join(scale(n, t / one) for n, t, _ in points), marks, labels)


def inline(text):
    """Code, bold and links of Markdown as HTML."""
    text = html.escape(text, quote=False).replace("&lt;br&gt;", "<br>")
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"\*([^*]+)\*", r"<i>\1</i>", text)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r"\1", text)


def table(rows):
    cells = [[inline(c.strip()) for c in row.strip().strip("|").split("|")] for row in rows if row.startswith("|")]
    body = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % c for c in row) for row in cells[2:])
    return "<table><tr>%s</tr>%s</table>" % ("".join("<th>%s</th>" % c for c in cells[0]), body)


def replace(page, blocks):
    for name, lines in blocks.items():
        pattern = re.compile(r"(<!-- evaluation: %s -->\n).*?(<!-- end of evaluation -->)" % name, re.S)
        page, count = pattern.subn(lambda m, lines=lines: m.group(1) + "\n".join(lines) + "\n" + m.group(2), page)
        if count != 1:
            sys.exit("%d blocks named %s" % (count, name))
    return page


def main():
    folder, page_path = sys.argv[1:3]
    figures = dict(line.split("\t", 1) for line in read(folder, "measured.tsv").splitlines())
    figures["value"] = " ".join(read(folder, "value.md").split()).replace("[simulated](docs/backtest.md)", "simulated")
    points = [(int(n), float(t), int(c)) for n, t, c in (line.split("\t") for line in read(folder, "curve.tsv").splitlines())]
    used = set(re.findall(r"\{(\w+)\}", "".join("".join(row) for row in CLAIMS))) | {"machine", "machine_factor"}
    missing = sorted(used - set(figures))
    if missing or not points or points[0][0] != 1:
        sys.exit("not measured: %s%s" % (", ".join(missing), "" if points and points[0][0] == 1 else " the curve from one replica on"))
    took = "; the whole run took %s" % figures["took"] if "took" in figures else ", part by part"
    run = ["Measured on %s, which take %s times the time of the reference machine%s." % (figures["machine"], figures["machine_factor"], took)]
    # The costs of the GPUs of the last five minutes, as the command prints them.
    cost = ["```"] + read(folder, "cost.txt").rstrip().splitlines() + ["```"]
    blocks = {"run": run, "claims": claims(figures), "curve": curve(points), "cost": cost}
    with open(page_path, encoding="utf-8") as f:
        page = replace(f.read(), blocks)
    with open(page_path, "w", encoding="utf-8") as f:
        f.write(page)
    style = dashboard_page.STYLE + "body{width:1240px;background:#fff}td,th{vertical-align:top;font-size:12px;padding:4px 10px 4px 0}figure{margin:16px 0}figcaption{font-weight:600}pre{background:#f6f8fa;padding:8px}.table{max-height:none}"
    parts = ['<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Evaluation of gpuscale</title><style>%s</style><h1>Evaluation of gpuscale</h1><p>%s</p>' % (style, inline(run[0])),
             "<h1>Claims</h1>", table(blocks["claims"]),
             plot("Mean GPU utilisation, %", folder, "util", "short", ""), plot("Memory in use by pod, GiB (highest of its GPUs)", folder, "memory", "short", "{{pod}}"),
             "<h1>Speed-up</h1>", plot_curve(points), table(blocks["curve"]), plot("Replicas of the policies", folder, "replicas", "short", "{{policy}}"),
             "<h1>An SLO episode, simulated</h1>", table(read(folder, "slo.md").splitlines()),
             "<h1>Cost of the last five minutes</h1><pre>%s</pre>" % html.escape("\n".join(cost[1:-1]))]
    with open(os.path.join(folder, "evaluation.html"), "w", encoding="utf-8") as f:
        f.write("\n".join(parts) + "</html>\n")
    print("%s and %s are written" % (page_path, os.path.join(folder, "evaluation.html")))


main()
