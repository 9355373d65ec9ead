#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays a recording through alert rules: alert_replay.py [--interval SECONDS] [--json] RECORDING RULES.yaml..

The recording is OpenMetrics text with timestamps, or CSV with a column t_s and one column per series. It becomes a unit test of
promtool with one expectation per evaluation, which fails at each transition of an alert; the transitions are read from promtool's
output. Series genuine_alert{alertname="A", ..} are 1 while the alert A with these labels should fire. An alert is false if it starts
outside every mark of its name and labels, or more than one evaluation after the end of such a mark; alerts without marks are not
judged. A series that is missing for more than a minute is marked stale. docs/monitoring.md shows the output."""
import argparse
import collections
import csv
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile

MARK, STALE_S = "genuine_alert", 60
TRANSITIONS = "ALERTS unless ALERTS offset {0}s or -(ALERTS offset {0}s unless ALERTS)"
LAST = ("vector(42)", "{} 4.2E+01")  # the last expectation fails, too: without it the output is not whole
LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
SAMPLE = re.compile(r'\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\} (-?)')


def read(path):
    """Returns {series: {time: value}}, times in seconds."""
    series = collections.defaultdict(dict)
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    if lines[0].startswith("#") or lines[-1] == "# EOF":
        for line in lines:
            if line and not line.startswith("#"):
                name, value, time = re.fullmatch(r"(\S+?(?:\{.*\})?) (\S+) (\S+)", line).groups()
                series[name][float(time)] = float(value)
    else:
        names, *rows = csv.reader(lines, quoting=csv.QUOTE_NONE)
        for row in rows:
            for name, text in zip(names[1:], row[1:]):
                if text:
                    series[name][float(row[0])] = float(text)
    return series


def values_of(samples, start, end, step):
    """Returns the samples in the notation of promtool, with runs of equal values as one word."""
    words, following = [], 0  # following: the next step to be written
    for time, value in sorted(samples.items()) + [(end, None)]:
        i = math.floor((time - start) / step + 0.5)
        if i < following or value is not None and math.isnan(value):
            continue
        if words and (i - following) * step > STALE_S:
            words.append("stale")
            following += 1
        words += ["_"] * (i - following) + ([] if value is None else [f"{value:.17g}"])
        following = i + 1
    runs = ((word, len(list(run))) for word, run in itertools.groupby(words))
    return " ".join(word if n == 1 else f"_x{n}" if word == "_" else f"{word}+0x{n - 1}" for word, n in runs)


def test_of(series, rules, start, end, step, interval):
    groups = [g for path in rules for g in re.findall(r"^ *- name: *(\S+)", open(path, encoding="utf-8").read(), re.M)]
    out = [f"rule_files: {json.dumps(rules)}\ngroup_eval_order: {json.dumps(groups)}",
           f"evaluation_interval: {interval}s\ntests:\n- interval: {step}s\n  input_series:"]
    for name, samples in series.items():
        if not re.match(MARK + r"(\{|$)", name):
            out.append("  - " + json.dumps({"series": name, "values": values_of(samples, start, end, step)}))
    times = range(0, int(end - start) + 1, interval)
    out.append("  promql_expr_test:")
    out += [f"  - {{expr: {'*q' if t else '&q ' + TRANSITIONS.format(interval)}, eval_time: {t}s}}" for t in times]
    out.append(f"  - {{expr: {LAST[0]}, eval_time: {times[-1]}s}}")
    return "\n".join(out) + "\n"


def evaluate(test):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(test)
        f.flush()
        done = subprocess.run(["promtool", "test", "rules", f.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if f"got: {LAST[1]}" not in done.stdout:
        sys.exit("promtool did not evaluate the rules: " + done.stdout[:400])
    return done.stdout.split(f'expr: "{LAST[0]}"')[0]


def seconds_of(duration):
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    return sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)([smhd])", duration))


def order(transition):
    """What is pending and fires is one interval: the start of firing comes before an end, and a pending alert after it."""
    labels, sign = transition
    return 1 if sign else 0 if labels["alertstate"] == "firing" else 2


def intervals_of(output):
    """Returns the intervals of all alerts in the order of their start; times since the start of the recording."""
    intervals, active, now = [], {}, 0
    for line in map(str.strip, output.splitlines()):
        if line.startswith("expr: "):
            now = seconds_of(re.search(r'", time: (\S+),$', line).group(1))
        if not line.startswith("got: {"):
            continue
        for labels, ends in sorted([(dict(LABEL.findall(text)), sign) for text, sign in SAMPLE.findall(line)], key=order):
            alert, state = labels.pop("alertname"), labels.pop("alertstate")
            labels.pop("__name__", None)
            key = alert, tuple(labels.items())
            x = active.get(key)
            if ends and x and (state == "firing") == (x["firing"] is not None):
                active.pop(key)["resolved"] = now
            elif not ends and (x is None or x[state] is None):
                if x is None:
                    x = active[key] = {"alert": alert, "labels": labels, "pending": None, "firing": None, "resolved": None}
                    intervals.append(x)
                x[state] = now
    return intervals


def breaches_of(series, start, end):
    """Returns the marked breaches; `labels` are those of the mark."""
    breaches = []
    for name, samples in series.items():
        if re.match(MARK + r"(\{|$)", name):
            labels, onset = dict(LABEL.findall(name)), None
            alert = labels.pop("alertname")
            for time, value in sorted(samples.items()) + [(end, 0)]:
                if value > 0 and onset is None:
                    onset = time
                elif not value > 0 and onset is not None:
                    breaches.append({"alert": alert, "labels": labels, "onset": onset - start, "end": time - start, "detected": None})
                    onset = None
    return breaches


def judge(intervals, breaches, marked, interval):
    """Sets `genuine` of the intervals whose alert has marks, and `detected` of the breaches."""
    for x in intervals:
        if x["firing"] is None or x["alert"] not in marked:
            continue
        x["genuine"] = False
        for b in breaches:
            if x["alert"] != b["alert"] or not b["labels"].items() <= x["labels"].items():
                continue
            if x["firing"] > b["end"] + interval or x["resolved"] is not None and x["resolved"] <= b["onset"]:
                continue
            x["genuine"] |= x["firing"] >= b["onset"]
            at = max(x["firing"], b["onset"])
            b["detected"] = at if b["detected"] is None else min(at, b["detected"])


def print_tables(intervals, breaches):
    def text_of(labels):
        return "{" + ", ".join(f'{k}="{v}"' for k, v in labels.items()) + "}"

    def print_rows(rows):
        widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
        print("\n".join("   ".join(f"{cell!s:{width}}" for cell, width in zip(row, widths)).rstrip() for row in rows))

    rows = [("ALERT", "PENDING", "FIRING", "FALSE", "FOUND", "MEAN-DETECT", "MAX-DETECT")]
    for alert in sorted({x["alert"] for x in intervals + breaches}):
        own = [x for x in intervals if x["alert"] == alert]
        firing, marks = [x for x in own if x["firing"] is not None], [b for b in breaches if b["alert"] == alert]
        found = [b["detected"] - b["onset"] for b in marks if b["detected"] is not None]
        rows.append((alert, len(own) - len(firing), len(firing), sum(x.get("genuine") is False for x in firing) if marks else "-",
                     f"{len(found)}/{len(marks)}" if marks else "-", f"{sum(found) / len(found):.4g}s" if found else "-",
                     f"{max(found):g}s" if found else "-"))
    print_rows(rows)
    print()
    rows = [("ALERT", "PENDING", "FIRING", "RESOLVED", "VERDICT", "LABELS")]
    for x in intervals:
        times = ["-" if x[k] is None else f"{x[k]}s" for k in ("pending", "firing", "resolved")]
        rows.append((x["alert"], *times, {True: "genuine", False: "false", None: "-"}[x.get("genuine")], text_of(x["labels"])))
    rows += [(b["alert"], "-", f"{b['onset']:g}s", f"{b['end']:g}s", "missed", text_of(b["labels"])) for b in breaches if b["detected"] is None]
    print_rows(rows)


def main():
    parser = argparse.ArgumentParser(description="Replay a recording through alert rules, which promtool evaluates.")
    parser.add_argument("--interval", type=int, help="seconds between two evaluations (default: the step of the recording)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("recording")
    parser.add_argument("rules", nargs="+")
    args = parser.parse_args()
    series = read(args.recording)
    times = sorted({time for samples in series.values() for time in samples})
    steps = collections.Counter(round(b - a) for a, b in zip(times, times[1:]))
    del steps[0]
    step, start, end = max(1, steps.most_common(1)[0][0]), times[0], times[-1]
    interval = args.interval or step
    rules = [os.path.abspath(path) for path in args.rules]
    intervals = intervals_of(evaluate(test_of(series, rules, start, end, step, interval)))
    breaches = breaches_of(series, start, end)
    marked = {dict(LABEL.findall(name)).get("alertname") for name in series if name.startswith(MARK)}
    judge(intervals, breaches, marked, interval)
    if args.json:
        json.dump({"intervals": intervals, "breaches": breaches}, sys.stdout, indent=1)
    else:
        print_tables(intervals, breaches)


main()
