# SPDX-License-Identifier: Apache-2.0
"""Compares the scale changes of a hostile run with those of a quiet run, target by target.

compare.py CHANGES ONSETS PERIOD TICK QUIET_FROM QUIET_TO HOSTILE_FROM HOSTILE_TO

CHANGES has a line "TIME TARGET REPLICAS" per change of spec.replicas, ONSETS a line "TIME WHAT" per fault that began. Load
repeats every PERIOD seconds, so a quiet run of whole periods says what each period of the hostile run has to show: the
same replica counts in the same order, each within one tick (and 2 s for the PATCH) of the quiet phase, or one tick more
when a fault began within the two ticks before. Prints what differs, then "N periods, N changes, N late by a tick"; exits 1
when anything differs.
"""
import collections
import sys

SLACK_S = 2.0


def read(path):
    with open(path, encoding='utf-8') as f:
        return [line.split(None, 2) for line in f if line.strip()]


def main():
    changes, onsets = read(sys.argv[1]), [float(row[0]) for row in read(sys.argv[2])]
    period, tick, quiet_from, quiet_to, from_s, to_s = map(float, sys.argv[3:9])
    by_target = collections.defaultdict(list)
    for t, target, replicas in changes:
        by_target[target].append((float(t), int(replicas)))
    faults = late = compared = 0
    for target, rows in sorted(by_target.items()):
        quiet = [(t, n) for t, n in rows if quiet_from <= t < quiet_to]
        # The phase of each change within a period: the earliest seen, as a late one has only waited longer for its tick.
        phases = {}
        for t, n in quiet:
            # A change belongs to the level it leads to; each level comes once per period.
            phases.setdefault(n, []).append(t % period)
        if len(phases) < 2:
            print(f'{target}: the quiet run shows {len(phases)} levels, expected at least 2')
            faults += 1
            continue
        expected = []
        for n, seen in phases.items():
            first = seen[0]
            spread = [(p - first + period / 2) % period - period / 2 for p in seen]
            if max(spread) - min(spread) > tick + SLACK_S:
                print(f'{target}: the quiet run is not periodic: {n} replicas at {[round(p, 1) for p in seen]}')
                faults += 1
            phase = (first + min(spread)) % period
            k = int(from_s // period)
            while k * period + phase < to_s:
                if k * period + phase >= from_s:
                    expected.append((k * period + phase, n))
                k += 1
        expected.sort()
        got = [(t, n) for t, n in rows if from_s - SLACK_S <= t < to_s + 2 * tick + SLACK_S]
        while got and expected and got[0][1] != expected[0][1] and got[0][0] < from_s + 2 * tick:
            got.pop(0)  # a change of the period before, late
        for i, (want_t, want_n) in enumerate(expected):
            compared += 1
            if i >= len(got):
                print(f'{target}: {want_n} replicas at {want_t:.1f}: missing')
                faults += 1
                break
            t, n = got[i]
            lateness = t - want_t
            allowed = tick + SLACK_S
            if any(want_t - 2 * tick <= onset <= t for onset in onsets):
                allowed += tick
            if n != want_n or not -tick - SLACK_S <= lateness <= allowed:
                print(f'{target}: expected {want_n} replicas at {want_t:.1f}, got {n} at {t:.1f} ({lateness:+.1f} s)')
                faults += 1
                if n != want_n:
                    break
            elif lateness > tick + SLACK_S:
                late += 1
        if len(got) > len(expected) and got[len(expected)][0] < to_s:
            print(f'{target}: {len(got) - len(expected)} changes more than in the quiet run, first {got[len(expected)]}')
            faults += 1
    print(f'{(to_s - from_s) / period:.0f} periods, {compared} changes, {late} late by a tick, {faults} faults')
    return 1 if faults or not compared else 0


sys.exit(main())
