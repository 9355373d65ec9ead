# SPDX-License-Identifier: Apache-2.0
"""Fits a line with gradient descent and nothing but the standard library, and reports its steps.

    python3 plain_loop.py [EPOCHS] &                # 10; the metrics are served while the loop runs
    curl http://127.0.0.1:9410/metrics
"""

import random
import sys

import gpuscale_hook as gpuscale

BATCHES, BATCH = 20, 256


def load(rng):
    for _ in range(BATCHES):
        xs = [rng.uniform(-1, 1) for _ in range(BATCH)]
        yield [(x, 3 * x + 1 + rng.gauss(0, 0.1)) for x in xs]


def main(epochs):
    rng = random.Random(7)
    slope = offset = 0.0
    for _ in range(epochs):
        with gpuscale.epoch():
            loss = 0.0
            for batch in gpuscale.batches(load(rng)):
                with gpuscale.step():
                    errors = [(slope * x + offset - y, x) for x, y in batch]
                    gradient = (sum(e * x for e, x in errors) / BATCH, sum(e for e, _ in errors) / BATCH)
                    with gpuscale.collective():
                        pass  # with several ranks: the mean of the gradients
                    slope -= 0.5 * gradient[0]
                    offset -= 0.5 * gradient[1]
                    loss = sum(e * e for e, _ in errors) / BATCH
            gpuscale.epoch_loss(loss)
    print(f"slope {slope:.2f} offset {offset:.2f} loss {loss:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
