"""Compare ERMClassifier on Dask with the classifier in memory: time, bytes on the wire, passes, memory.

    OPENBLAS_NUM_THREADS=2 python -m benchmarks.dask_scale     # 2,000,000 x 28 on two workers
    python -m benchmarks.dask_scale --rows 20000000 --from-disk --memory 1GB
    python -m benchmarks.dask_scale --rows 200000 --p 1

Workers have one thread each, for BLAS too; the fit in memory has as many threads as there are workers. With
``--from-disk`` the rows are written to .npy files first and read again in every pass where they do not fit
into the workers' memory; then there is no fit in memory.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

import exclusivity
from benchmarks.measure import peak_bytes
from dask import delayed
from exclusivity.dask import ERMClassifier

N_FEATURES = 28


def make_block(number: int, n_rows: int) -> tuple[Any, Any]:
    """Return rows of two overlapping classes, always the same for a number."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n_rows, N_FEATURES))
    direction = np.random.default_rng(99).normal(size=N_FEATURES) / np.sqrt(N_FEATURES)
    return X, (X @ direction + rng.normal(size=n_rows) > 0).astype(np.int8)


def write_block(folder: Path, number: int, n_rows: int) -> None:
    for name, part in zip("xy", make_block(number, n_rows), strict=True):
        np.save(folder / f"{name}-{number}.npy", part)


def collections(client: Client, folder: Path | None, sizes: list[int]) -> tuple[Any, Any]:
    """Return X and y: read from the folder in every pass, or kept by the workers."""
    if folder:
        client.gather([client.submit(write_block, folder, *pair) for pair in enumerate(sizes)])
        blocks = [[delayed(np.load)(folder / f"{name}-{i}.npy") for name in "xy"] for i in range(len(sizes))]
    else:
        blocks = [delayed(make_block, nout=2)(*pair) for pair in enumerate(sizes)]
    X = da.concatenate(
        [da.from_delayed(x, (n, N_FEATURES), float) for (x, _), n in zip(blocks, sizes, strict=True)]
    )
    y = da.concatenate([da.from_delayed(y, (n,), np.int8) for (_, y), n in zip(blocks, sizes, strict=True)])
    if not folder:
        X, y = client.persist([X, y])
        client.gather(client.compute([X.sum(), y.sum()]))
        client.rebalance()  # whichever worker was first up has most of the blocks
    return X, y


def fit_on_dask(client: Client, X: Any, y: Any, parameters: dict[str, Any]) -> float:
    """Fit, print what it took, and return the seconds."""

    def used() -> tuple[int, list[float]]:
        sent = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
        return sum(sent.values()), [time.process_time(), *client.run(time.process_time).values()]

    (sent, cpu), start = used(), time.perf_counter()
    model = ERMClassifier(30, **parameters).fit(X, y)
    seconds = time.perf_counter() - start
    sent_after, cpu_after = used()
    spent = ", ".join(f"{after - before:.2f}" for after, before in zip(cpu_after, cpu, strict=True))
    print(
        f"Dask: {seconds:.2f} s, objective {model.objective_[0]:.12g}, gap {model.dual_gap_[0]:.1e}, "
        f"{model.history_[0].passes[-1]:.0f} passes, {sent_after - sent:,} bytes between workers, "
        f"processor seconds of client and scheduler, then of workers: {spent}"
    )
    return seconds


def fit_in_memory(X: Any, y: Any, parameters: dict[str, Any]) -> float:
    start, used = time.perf_counter(), time.process_time()
    model = exclusivity.ERMClassifier(30, **parameters).fit(X, y)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    print(f"in memory: {seconds:.2f} s, objective {model.objective_[0]:.12g}, processor seconds {used:.2f}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="auto", help="of each worker")
    parser.add_argument("--p", type=float, default=2.0)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--from-disk", action="store_true")
    args = parser.parse_args()
    n_blocks = max(args.workers, args.rows // 125_000)
    sizes = [len(part) for part in np.array_split(np.arange(args.rows), n_blocks)]
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    settings = {"threads_per_worker": 1, "memory_limit": args.memory, "dashboard_address": "127.0.0.1:0"}
    settings["env"] = one
    parameters = {"p": args.p, "tol": args.tol}
    with (
        LocalCluster(args.workers, **settings) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as scratch,
    ):
        X, y = collections(client, Path(scratch) if args.from_disk else None, sizes)
        local = None if args.from_disk else client.compute([X, y], sync=True)
        on_dask, in_memory = [], []
        for _ in range(args.repeats):  # in turns, so that whatever else the machine does slows down both
            with threadpool_limits(1):  # like the workers
                on_dask.append(fit_on_dask(client, X, y, parameters))
            if local:
                with threadpool_limits(args.workers):
                    in_memory.append(fit_in_memory(*local, parameters))
        print(f"medians of {args.repeats}: Dask {median(on_dask):.2f} s", end="")
        print(
            f", in memory {median(in_memory):.2f} s, ratio {median(on_dask) / median(in_memory):.2f}"
            if local
            else ""
        )
        peaks = client.run(peak_bytes)
        print("peak memory of the workers (MB):", [f"{value / 1e6:.0f}" for value in peaks.values()])


if __name__ == "__main__":
    main()
