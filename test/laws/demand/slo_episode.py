#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints an SLO episode as a recording for `gpuscale backtest`: requests arrive as a Poisson process whose rate rises and falls
in stages, those of the benchmark that llm-d publishes for SLO-aware scaling; one replica serves 1.45 requests a second.

slo_episode.py [SEED [EPISODES]]: rows of 5 s with t_s, demand (in replicas) and requests; ten quiet minutes follow each episode.
"""
import math
import random
import sys

STAGES = ((2, 300), (4, 360), (6, 360), (8, 360), (10, 360), (4, 360), (1, 360), (0.01, 600))  # requests a second, seconds
REQUESTS_A_REPLICA, BIN_S = 1.45, 5


def poisson(draws, mean):
    """Knuth's method: fine for the small means of a row."""
    limit, product, count = math.exp(-mean), draws.random(), 0
    while product > limit:
        product *= draws.random()
        count += 1
    return count


def main():
    draws = random.Random(int(sys.argv[1]) if sys.argv[1:] else 1)
    print("t_s,demand,requests")
    t = 0
    for _ in range(int(sys.argv[2]) if sys.argv[2:] else 1):
        for rate, seconds in STAGES:
            for _ in range(seconds // BIN_S):
                requests = poisson(draws, rate * BIN_S)
                print("%d,%.4f,%d" % (t, requests / BIN_S / REQUESTS_A_REPLICA, requests))
                t += BIN_S


main()
