#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Closes the loop around `gpuscale step` without the simulator of gpuscale, for run-backtest.

step_loop.py RECORDING START_S WAIT_S REPLICAS COMMAND..: a queue that ready replicas serve in steps of a second; the
command decides every 15 s on the signals demand and backlog. Prints GPU-HOURS LATE-PERCENT DIRECTION-CHANGES.
"""
import csv
import json
import subprocess
import sys

path, start_s, wait_s, ready = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(open(path))]
times = [row.get("time", row.get("t_s")) for row in rows]
hold = int(times[1] - times[0])
step = subprocess.Popen(sys.argv[5:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
orders, backlog, paid, requests, late, changes, direction = [], 0.0, 0.0, 0.0, 0.0, 0, 0
recent = []
for now in range(len(rows) * hold):
    row = rows[now // hold]
    ready += sum(n for at, n in orders if at <= now)
    orders = [(at, n) for at, n in orders if at > now]
    replicas = ready + sum(n for _, n in orders)
    backlog = max(0.0, backlog + row["demand"] - ready)
    recent = (recent + [row["demand"]])[-15:]
    paid += replicas
    requests += row["requests"]
    if backlog > wait_s * ready:
        late += row["requests"]
    if (now + 1) % 15:
        continue
    observation = {"time": times[0] + now + 1, "replicas": replicas, "ready": ready, "pending": replicas - ready,
                   "signals": {"demand": sum(recent) / len(recent), "backlog": backlog}}
    step.stdin.write(json.dumps(observation) + "\n")
    step.stdin.flush()
    wanted = json.loads(step.stdout.readline())["desiredReplicas"]
    if wanted == replicas:
        continue
    way = 1 if wanted > replicas else -1
    changes += direction not in (0, way)
    direction = way
    if wanted > replicas:
        orders.append((now + 1 + start_s, wanted - replicas))
    while wanted < replicas:  # the newest order goes first
        if orders:
            at, n = orders.pop()
            if n > 1:
                orders.append((at, n - 1))
        else:
            ready -= 1
        replicas -= 1
step.stdin.close()
step.wait()
print(f"{paid / 3600:.2f} {100 * late / requests:.2f} {changes}")
