# SPDX-License-Identifier: Apache-2.0
"""Metrics of a training loop for Prometheus, in one file and with the standard library only.

    import gpuscale_hook as gpuscale

    for epoch in range(10):
        if not gpuscale.check():  # optional: the GPUs of this node are faulty
            save_checkpoint_and_exit()
        with gpuscale.epoch():
            for batch in gpuscale.batches(loader):  # or: with gpuscale.data(): batch = next(it)
                with gpuscale.step():
                    loss = train(batch)
                    with gpuscale.collective():
                        all_reduce(gradients)
            gpuscale.epoch_loss(loss)

The hook never stops the training: when its port is taken or a mirror fails, it logs a warning and the loop goes on. A
step costs a few microseconds. Times are those of the host; the hook never waits for a GPU.

Environment, each with an argument of configure() that has precedence:
    GPUSCALE_HOOK_LISTEN  address of /metrics, "127.0.0.1:9410" by default; LOCAL_RANK is added to the port;
                          "off" serves nothing
    TRAINING_JOB          label training_job; left out when unset: the rules then take the name from the pod
    RANK                  label rank; else SLURM_PROCID, OMPI_COMM_WORLD_RANK, JOB_COMPLETION_INDEX, or 0
    GPUSCALE_HOOK_MIRROR  "wandb" or "mlflow": also log there, to the run that is active
    GPUSCALE_HOOK_CHECK   command of check(), "gpuscale-exporter check" by default
"""

import contextlib
import http.server
import logging
import os
import queue
import shlex
import subprocess
import sys
import threading
import time

LABEL_BYTES_MAX = 128  # longer values are cut
GPUS_MAX = 64  # values of the label gpu_id
MIRROR_QUEUE_MAX = 64  # records that wait; further ones are dropped
MIRROR_EVERY_S = 10.0
MEMORY_EVERY_S = 1.0
REQUEST_TIMEOUT_S = 5.0
LEAK_BYTES_PER_EPOCH = 1e9
CHECK_TIMEOUT_S = 30.0

log = logging.getLogger("gpuscale_hook")

# name, type, help, attribute of Hook; the order of the page
FAMILIES = (
    ("training_batches_total", "counter", "Steps that are complete.", "batches"),
    ("training_batch_duration_seconds", "gauge", "Duration of the last step on the host.", "last_step_s"),
    ("training_compute_seconds_total", "counter", "Time in steps without collectives and data loading.", "compute_s"),
    ("training_data_wait_seconds_total", "counter", "Time in which the loop waited for data.", "data_s"),
    ("training_collective_seconds_total", "counter", "Time in collectives.", "collective_s"),
    ("training_epoch_total", "counter", "Epochs that are complete.", "epochs"),
    ("training_model_flops_total", "counter", "Operations that the model needed, as the loop counts them.", "flops"),
    ("training_epoch_loss", "gauge", "Loss that the loop reported last.", "loss"),
)


def _first_env(*names):
    return next((os.environ[n] for n in names if os.environ.get(n)), None)


def _label(value):
    text = str(value).encode("utf-8", "replace")[:LABEL_BYTES_MAX].decode("utf-8", "ignore")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _torch():
    """torch, if the training uses it; the hook never imports it."""
    return sys.modules.get("torch")


class _Span:
    """Measures a block. A block that raises is not counted, and the exception passes."""

    __slots__ = ("hook", "kind", "start", "inside", "range")

    def __init__(self, hook, kind):
        self.hook = hook
        self.kind = kind

    def __enter__(self):
        self.inside = 0.0  # data loading and collectives inside of a step
        self.range = self.hook._open_range(self.kind)
        self.hook._open.append(self)
        self.start = time.perf_counter()
        return self

    def __exit__(self, kind, value, trace):
        seconds = time.perf_counter() - self.start
        self.hook._close(self, seconds, kind is None)
        return False


class Hook:
    """The measurements of one process. configure() creates the one of the module."""

    def __init__(self, job=None, rank=None, listen=None, mirror=None):
        job = job if job is not None else os.environ.get("TRAINING_JOB")
        rank = rank if rank is not None else _first_env(
            "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "JOB_COMPLETION_INDEX")
        self.labels = [("training_job", _label(job))] if job else []
        self.labels.append(("rank", _label(rank if rank is not None else 0)))
        self.batches = self.epochs = 0
        self.compute_s = self.data_s = self.collective_s = 0.0
        self.last_step_s = self.loss = self.flops = None
        self.memory = {}  # gpu_id -> bytes
        self.address = None  # (host, port) of /metrics
        self._memory_at = self._mirror_at = float("-inf")
        self._memory_of_epoch = {}
        self._local = threading.local()
        self._lock = threading.Lock()
        self._warned = set()
        self._server = None
        self._mirror = None
        self._guard("serve", self._serve, listen or os.environ.get("GPUSCALE_HOOK_LISTEN") or "127.0.0.1:9410")
        self._guard("mirror", self._start_mirror, mirror or os.environ.get("GPUSCALE_HOOK_MIRROR"))

    # ---- what a training loop calls ----

    def step(self):
        return _Span(self, "step")

    def data(self):
        return _Span(self, "data")

    def collective(self):
        return _Span(self, "collective")

    def batches_of(self, loader):
        """Yields the items of `loader`; the time for each counts as data loading."""
        items = iter(loader)
        while True:
            try:
                with self.data():
                    item = next(items)
            except StopIteration:
                return
            yield item

    @contextlib.contextmanager
    def epoch(self):
        yield
        with self._lock:
            self.epochs += 1
        self._guard("memory", self._check_epoch)
        self._guard("mirror", self._mirror_now)

    def epoch_loss(self, value):
        self._guard("loss", self._set_loss, value)

    def add_flops(self, operations):
        """Counts the operations that a step needs by the model, such as 6 * parameters * tokens for a transformer."""
        with self._lock:
            self.flops = (self.flops or 0.0) + float(operations)

    def check(self, command=None):
        """Returns False when `gpuscale-exporter check` finds a fault of the GPUs, and logs it. A check that cannot run is
        a warning and returns True."""
        words = shlex.split(command or os.environ.get("GPUSCALE_HOOK_CHECK") or "gpuscale-exporter check")
        done = self._guard("check", lambda: subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=CHECK_TIMEOUT_S, check=False))
        if done is None or done.returncode == 0:
            return True
        if done.returncode != 1:  # 1: a fault; anything else: wrong usage, no driver
            self._warn("check", f"exit status {done.returncode}: {done.stderr.strip()}")
            return True
        log.error("GPUs are faulty: %s", done.stdout.strip())
        return False

    def set_memory(self, gpu_id, used_bytes):
        """Reports the memory of a GPU. With torch and CUDA the hook reads it by itself."""
        gpu_id = _label(gpu_id)
        with self._lock:
            if gpu_id in self.memory or len(self.memory) < GPUS_MAX:
                self.memory[gpu_id] = float(used_bytes)

    def close(self):
        """Stops the server. Training code need not call it: the threads end with the process."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    # ---- measuring ----

    @property
    def _open(self):
        stack = getattr(self._local, "open", None)
        if stack is None:
            stack = self._local.open = []
        return stack

    def _open_range(self, kind):
        torch = _torch()
        if torch is None:
            return None
        try:  # makes the block visible in a profiler trace; `gpuscale trace` knows these names
            entered = torch.profiler.record_function("gpuscale." + kind)
            entered.__enter__()
            return entered
        except Exception as e:  # an unusual build of torch
            self._warn("range", e)
            return None

    def _close(self, span, seconds, ok):
        if span.range is not None:
            self._guard("range", span.range.__exit__, None, None, None)
        stack = self._open
        while stack and stack.pop() is not span:
            pass
        if not ok:
            return
        with self._lock:
            if span.kind == "step":
                self.batches += 1
                self.last_step_s = seconds
                self.compute_s += max(seconds - span.inside, 0.0)
            elif span.kind == "data":
                self.data_s += seconds
            else:
                self.collective_s += seconds
        if stack and span.kind != "step":
            stack[-1].inside += seconds
        if span.kind == "step":
            self._guard("memory", self._read_memory)
            self._guard("mirror", self._mirror_sometimes)

    def _set_loss(self, value):
        number = float(value)  # of a tensor: waits for the GPU, once an epoch
        with self._lock:
            self.loss = number

    def _read_memory(self, force=False):
        now = time.monotonic()
        if not force and now - self._memory_at < MEMORY_EVERY_S:
            return
        self._memory_at = now
        torch = _torch()
        if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
            return
        for i in range(min(torch.cuda.device_count(), GPUS_MAX)):
            used = torch.cuda.memory_allocated(i)
            if used or str(i) in self.memory:
                self.set_memory(i, used)

    def _check_epoch(self):
        self._read_memory(force=True)
        with self._lock:
            now = dict(self.memory)
        for gpu_id, used in now.items():
            grown = used - self._memory_of_epoch.get(gpu_id, used)
            if grown > LEAK_BYTES_PER_EPOCH:
                log.warning("GPU %s: allocated memory grew by %.1f GB in this epoch; does the loop keep tensors?",
                            gpu_id, grown / 1e9)
        self._memory_of_epoch = now

    # ---- failures of the hook itself ----

    def _warn(self, what, error):
        if what not in self._warned:
            self._warned.add(what)
            log.warning("%s failed: %s; training continues, further failures are not logged", what, error)

    def _guard(self, what, function, *args):
        try:
            return function(*args)
        except Exception as e:
            self._warn(what, e)
            return None

    # ---- exposition ----

    def render(self):
        """Returns the page in Prometheus's text format 0.0.4."""
        with self._lock:
            values = [getattr(self, f[3]) for f in FAMILIES]
            memory = sorted(self.memory.items())
        lines = []
        for (name, kind, text, _), value in zip(FAMILIES, values):
            if value is not None:
                lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", self._sample(name, (), value)]
        if memory:
            name = "training_gpu_memory_gb"
            lines += [f"# HELP {name} GPU memory that tensors hold (10^9 bytes).", f"# TYPE {name} gauge"]
            lines += [self._sample(name, (("gpu_id", gpu_id),), used / 1e9) for gpu_id, used in memory]
        return "\n".join(lines) + "\n"

    def _sample(self, name, extra, value):
        labels = ",".join(f'{k}="{v}"' for k, v in (*self.labels, *extra))
        text = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(repr(value), repr(value))
        return f"{name}{{{labels}}} {text}"

    def _serve(self, listen):
        if listen == "off":
            return
        host, _, port = listen.rpartition(":")
        number = int(port)
        number += int(os.environ.get("LOCAL_RANK") or 0) if number else 0  # 0: any free port
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = REQUEST_TIMEOUT_S

            def do_GET(self):
                found = self.path.split("?")[0] == "/metrics"
                body = (hook.render() if found else "see /metrics\n").encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8" if found else "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass  # a line for every scrape would drown the log of the training

        class Server(http.server.HTTPServer):
            allow_reuse_address = True

            def handle_error(self, request, client_address):
                hook._warn("request", sys.exc_info()[1])

        self._server = Server((host.strip("[]") or "0.0.0.0", number), Handler)
        self.address = self._server.server_address[:2]
        threading.Thread(target=self._server.serve_forever, name="gpuscale-hook", daemon=True).start()

    # ---- mirror ----

    def _start_mirror(self, name):
        if not name:
            return
        send = {"wandb": self._to_wandb, "mlflow": self._to_mlflow}.get(name)
        if send is None:
            raise ValueError(f'mirror: expected "wandb" or "mlflow", got "{name}"')
        __import__(name)
        self._mirror = queue.Queue(MIRROR_QUEUE_MAX)
        threading.Thread(target=self._run_mirror, args=(send,), name="gpuscale-mirror", daemon=True).start()

    def _run_mirror(self, send):
        while True:
            target, values, step = self._mirror.get()
            self._guard("mirror", send, target, values, step)
            self._mirror.task_done()

    def _mirror_sometimes(self):
        now = time.monotonic()
        if self._mirror and now - self._mirror_at >= MIRROR_EVERY_S:
            self._mirror_now()

    def _mirror_now(self):
        if not self._mirror:
            return
        self._mirror_at = time.monotonic()
        with self._lock:
            step = self.batches
            values = {f[0]: getattr(self, f[3]) for f in FAMILIES if getattr(self, f[3]) is not None}
        target = self._active_run()
        if target is None:
            self._warn("mirror", "no run is active")
            return
        with contextlib.suppress(queue.Full):  # a slow service loses records, not steps
            self._mirror.put_nowait((target, values, step))

    @staticmethod
    def _active_run():
        """The run of the training thread: mlflow keeps it per thread."""
        wandb, mlflow = sys.modules.get("wandb"), sys.modules.get("mlflow")
        if wandb is not None and getattr(wandb, "run", None) is not None:
            return wandb.run
        run = mlflow.active_run() if mlflow is not None else None
        return run.info.run_id if run is not None else None

    @staticmethod
    def _to_wandb(run, values, step):
        run.log(values | {"training_step": step})

    @staticmethod
    def _to_mlflow(run_id, values, step):
        client = sys.modules["mlflow"].tracking.MlflowClient()
        for name, value in values.items():
            client.log_metric(run_id, name, value, step=step)


# ---- the hook of this process ----

_hook = None
_hook_lock = threading.Lock()


def configure(job=None, rank=None, listen=None, mirror=None):
    """Creates the hook of this process. Without it, the first use creates one from the environment."""
    global _hook
    with _hook_lock:
        if _hook is None:
            _hook = Hook(job, rank, listen, mirror)
        else:
            log.warning("configure: the hook exists already; this call has no effect")
    return _hook


def hook():
    """Returns the hook of this process."""
    return _hook if _hook is not None else configure()


def step():
    return hook().step()


def data():
    return hook().data()


def collective():
    return hook().collective()


def batches(loader):
    return hook().batches_of(loader)


def epoch():
    return hook().epoch()


def epoch_loss(value):
    hook().epoch_loss(value)


def add_flops(operations):
    hook().add_flops(operations)


def check(command=None):
    return hook().check(command)


def set_memory(gpu_id, used_bytes):
    hook().set_memory(gpu_id, used_bytes)
