# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with PyTorch, on a GPU if there is one, alone or under torchrun, and reports its steps.

    python3 pytorch_loop.py [EPOCHS]
    torchrun --nproc-per-node 2 pytorch_loop.py [EPOCHS]
    PROFILE=trace.json python3 pytorch_loop.py 1 && gpuscale trace trace.json
"""

import contextlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gpuscale_hook as gpuscale


def profiler():
    path = os.environ.get("PROFILE")
    if not path:
        return contextlib.nullcontext()
    return torch.profiler.profile(on_trace_ready=lambda p: p.export_chrome_trace(path))


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def main(epochs):
    cuda = torch.cuda.is_available()
    distributed = "WORLD_SIZE" in os.environ
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if cuda else torch.device("cpu")
    if distributed:
        dist.init_process_group("nccl" if cuda else "gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(torch.randn(1024, 32), torch.randint(0, 4, (1024,)))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    with profiler():
        for _ in range(epochs):
            with gpuscale.epoch():
                for x, y in gpuscale.batches(loader):
                    with gpuscale.step():
                        optimizer.zero_grad()
                        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
                        loss.backward()
                        if distributed:
                            with gpuscale.collective():
                                average_gradients(model)
                        optimizer.step()
                gpuscale.epoch_loss(loss.detach())
    if distributed:
        dist.destroy_process_group()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
