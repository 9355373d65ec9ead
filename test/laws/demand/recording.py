#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts a trace of test/support/traces into a recording for `gpuscale backtest`, scaled to a mean of 6 replicas.

A trace of an LLM service (t_s, requests, context_tokens, generated_tokens) keeps its arrivals: one replica reads 12,000
tokens of prompt or writes 900 tokens a second. Any other trace (t_s, value) gives the mean of the arrivals: straight
lines join its rows, and every 5 s (--bin) draw around them, with the variance of a Poisson process whose requests take
one replica-second each. The draws come from a fixed seed, so that the same arguments give the same recording.
"""
import argparse
import csv
import datetime
import math
import random
import sys

BIN_S = 5
PROMPT_TOKENS_A_SECOND = 12000
NEW_TOKENS_A_SECOND = 900
DAY_S = 86400


def arrivals_of_tokens(rows):
    """Replica-seconds and requests of each bin."""
    work = [float(r["context_tokens"]) / PROMPT_TOKENS_A_SECOND + float(r["generated_tokens"]) / NEW_TOKENS_A_SECOND
            for r in rows]
    return work, [float(r["requests"]) for r in rows]


def arrivals_around(rows, mean, from_day, days, bin_s):
    """Replica-seconds of each bin, drawn around the straight lines between the rows."""
    column = list(rows[0])[1]
    points = [(float(r["t_s"]) - from_day * DAY_S, float(r[column])) for r in rows
              if float(r["t_s"]) >= from_day * DAY_S]
    unit = sum(value for _, value in points) / len(points) / mean
    draws = random.Random(1)
    work, i = [], 0
    for s in range(0, int(min(points[-1][0], days * DAY_S)), bin_s):
        while points[i + 1][0] <= s:
            i += 1
        (t0, v0), (t1, v1) = points[i], points[i + 1]
        part = (s - t0) / (t1 - t0)
        level = (v0 * (1 - part) + v1 * part) / unit * bin_s
        work.append(max(0, draws.gauss(level, math.sqrt(level))))
    return work


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("trace")
    p.add_argument("--mean", type=float, default=6, help="mean demand in replicas (6)")
    p.add_argument("--from-day", type=float, default=0, help="skip the days before (0)")
    p.add_argument("--days", type=float, default=7, help="at most as many days (7)")
    p.add_argument("--bin", type=int, default=BIN_S, help="seconds of a row, for a trace without tokens (5)")
    p.add_argument("--start", help="a date and time, such as 2026-01-05T00:00:00Z: rows have times instead of seconds")
    p.add_argument("--shift", type=float, default=0, help="start at this part of the trace and wrap around (0)")
    p.add_argument("--repeat", type=int, default=1, help="play it so many times in a row (1)")
    a = p.parse_args()
    with open(a.trace, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    requests = None
    if "requests" in rows[0]:
        work, requests = arrivals_of_tokens(rows)
    else:
        work = arrivals_around(rows, a.mean, a.from_day, a.days, a.bin)
    bin_s = BIN_S if requests else a.bin

    def time_of(i):
        if not a.start:
            return "%d" % (i * bin_s)
        start = datetime.datetime.strptime(a.start, "%Y-%m-%dT%H:%M:%SZ")
        return (start + datetime.timedelta(seconds=i * bin_s)).isoformat() + "Z"

    def played(bins):
        first = int(a.shift * len(bins))
        return (bins[first:] + bins[:first]) * a.repeat

    work = played(work)
    scale = a.mean * len(work) / sum(work)
    digits = 2 if a.start else 9
    out = [("time" if a.start else "t_s") + ",demand" + (",requests" if requests else "")]
    counts = [",%d" % r for r in played(requests)] if requests else [""] * len(work)
    out += ["%s,%.*f%s" % (time_of(i), digits, w * scale, r) for i, (w, r) in enumerate(zip(work, counts))]
    sys.stdout.write("\n".join(out) + "\n")


main()
