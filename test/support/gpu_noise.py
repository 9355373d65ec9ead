#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a noisy hour of GPUs as a recording for alert_replay.py: gpu_noise.py SEED..

Each seed is a node of four GPUs of 24000 MiB, scraped every 5 s, with Hostname="seed-N". Without a breach: single scrapes
that lie, sometimes two in a row; memory that is full while a new pod loads its model, now and then later than usual. What is
one: heat above 85 C or memory above 95 % for a minute or more, also heat that hovers about the level. Breaches are marked by
genuine_alert, for the shipped alerts and for bare thresholds of the same levels (NaiveHeat, NaiveMemory)."""
import random
import sys

STEPS, STEP_S, TOTAL_MIB, GPUS = 720, 5, 24000, 4
MARKS = {"heat": ("GpuTemperatureCritical", "NaiveHeat"), "memory": ("GpuMemoryCritical", "NaiveMemory")}


class Gpu:
    def __init__(self, rng, seed, number):
        self.rng, self.labels = rng, f'Hostname="seed-{seed}",UUID="GPU-{seed}-{number}",gpu="{number}",modelName="NVIDIA L4"'
        base, memory = rng.uniform(62, 75), rng.uniform(0.4, 0.65) * TOTAL_MIB
        self.heat = [rng.gauss(base, 1.3) for _ in range(STEPS)]
        self.used = [int(rng.gauss(memory, 250)) for _ in range(STEPS)]
        self.pods = [f"old-{number}"] * STEPS
        self.breach = {"heat": [0] * STEPS, "memory": [0] * STEPS}
        self.taken = {"heat": set(range(70)), "memory": set(range(70))}
        for _ in range(rng.randint(1, 2)):
            self.load(number)
        for _ in range(rng.randint(1, 2)):
            self.overheat()
        if rng.random() < 0.8:
            self.fill_up()
        for _ in range(rng.randint(6, 11)):
            self.lie("heat", self.heat, lambda: rng.uniform(85.5, 92))
        for _ in range(rng.randint(2, 5)):
            self.lie("memory", self.used, self.full)

    def full(self):
        return self.rng.randint(22900, 23700)

    def place(self, kind, length, around):
        """A free stretch of `length` steps, with nothing of its kind `around` steps before and after; None: there is none."""
        for _ in range(200):
            at = self.rng.randrange(70, STEPS - length - around)
            stretch = range(at - around, at + length + around)
            if not self.taken[kind].intersection(stretch):
                self.taken[kind].update(stretch)
                return at
        return None

    def load(self, number):
        late = 62 if self.rng.random() < 0.06 else self.rng.randint(0, 8)
        length = self.rng.randint(8, 22)
        at = self.place("memory", late + length + 62, 2)
        if at is None:
            return
        for i in range(at, STEPS):
            self.pods[i] = f"job-{number}-{at}"
        for i in range(at + late, at + late + length):
            self.used[i] = self.full()

    def overheat(self):
        length, hovers = self.rng.randint(13, 25), self.rng.random() < 0.3
        at = self.place("heat", length, 24)
        if at is None:
            return
        for i in range(at, at + length):
            low = hovers and i > at + 1 and self.rng.random() < 0.3
            self.heat[i] = self.rng.uniform(83.2, 84.8) if low else self.rng.uniform(86.1, 90)
            self.breach["heat"][i] = 1

    def fill_up(self):
        length = self.rng.randint(13, 20)
        at = self.place("memory", length, 24)
        if at is None:
            return
        for i in range(at, at + length):
            self.used[i] = self.full()
            self.breach["memory"][i] = 1

    def lie(self, kind, values, value):
        length = 2 if self.rng.random() < 0.05 else 1
        at = self.place(kind, length, 3)
        for i in range(at or 0, (at or 0) + (length if at else 0)):
            values[i] = value()

    def show(self, name, labels, values, where=None):
        for i, v in enumerate(values):
            if where is None or where[i]:
                print(f"{name}{{{labels}}} {v:.6g} {i * STEP_S}")

    def write(self):
        self.show("DCGM_FI_DEV_GPU_TEMP", self.labels, self.heat)
        for pod in sorted(set(self.pods)):
            here, labels = [p == pod for p in self.pods], f'{self.labels},namespace="ml",pod="{pod}"'
            self.show("DCGM_FI_DEV_FB_USED", labels, self.used, here)
            self.show("DCGM_FI_DEV_FB_FREE", labels, [TOTAL_MIB - u for u in self.used], here)
        uuid = self.labels.split(",")[1]
        for kind, alerts in MARKS.items():
            for alert in alerts:
                self.show("genuine_alert", f'alertname="{alert}",{uuid}', self.breach[kind])


for seed in sys.argv[1:]:
    random_numbers = random.Random(int(seed))
    for k in range(GPUS):
        Gpu(random_numbers, seed, k).write()
print("# EOF")
