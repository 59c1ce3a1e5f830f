"""ERMClassifier on Dask against the classifier in memory: time, bytes on the wire, passes over the rows.

    OPENBLAS_NUM_THREADS=2 python benchmarks/dask_scale.py     # 2,000,000 x 28 on two workers
    python benchmarks/dask_scale.py --rows 20000000 --from-disk --memory 1GB
    python benchmarks/dask_scale.py --rows 200000 --p 1

Workers have one thread each, for BLAS too; the fit in memory has as many threads as there are workers. With
``--from-disk`` the rows are written to .npy files first, and read again in every pass where they do not
fit into the workers' memory. The workers themselves count the bytes that they send to each other.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

import exclusivity
from dask import delayed
from exclusivity.dask import ERMClassifier

N_FEATURES = 28


def make_block(number: int, n_rows: int) -> tuple[Any, Any]:
    """Rows of two overlapping classes, always the same for a number."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(n_rows, N_FEATURES))
    direction = np.random.default_rng(99).normal(size=N_FEATURES) / np.sqrt(N_FEATURES)
    return X, (X @ direction + rng.normal(size=n_rows) > 0).astype(np.int8)


def write_block(folder: Path, number: int, n_rows: int) -> None:
    X, y = make_block(number, n_rows)
    np.save(folder / f"x-{number}.npy", X)
    np.save(folder / f"y-{number}.npy", y)


def read(path: Path) -> Any:
    return np.load(path)


def collections(folder: Path | None, sizes: list[int]) -> tuple[Any, Any]:
    xs, ys = [], []
    for number, n_rows in enumerate(sizes):
        if folder is None:
            both = delayed(make_block)(number, n_rows)
            x, y = both[0], both[1]
        else:
            x, y = delayed(read)(folder / f"x-{number}.npy"), delayed(read)(folder / f"y-{number}.npy")
        xs.append(da.from_delayed(x, (n_rows, N_FEATURES), float))
        ys.append(da.from_delayed(y, (n_rows,), np.int8))
    return da.concatenate(xs), da.concatenate(ys)


def sent_bytes(client: Client) -> int:
    counts = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return int(sum(counts.values()))


def processor_seconds(client: Client) -> list[float]:
    """Of this process, in which the scheduler runs too, and of the workers."""
    return [time.process_time(), *client.run(time.process_time).values()]


def peak_memory(client: Client) -> dict[str, float]:
    def peak() -> float:
        import resource  # noqa: PLC0415 -- on the worker

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    return dict(client.run(peak))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--blocks", type=int, default=0, help="default: one per 125,000 rows")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--threads", type=int, default=0, help="of the fit in memory; default: as many as workers"
    )
    parser.add_argument("--memory", default="auto")
    parser.add_argument("--p", type=float, default=2.0)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--from-disk", action="store_true")
    parser.add_argument("--no-reference", action="store_true", help="leave out the fit in memory")
    options = parser.parse_args()
    n_blocks = options.blocks or max(options.workers, options.rows // 125_000)
    sizes = [len(part) for part in np.array_split(np.arange(options.rows), n_blocks)]
    settings = {"threads_per_worker": 1, "memory_limit": options.memory, "dashboard_address": "127.0.0.1:0"}
    settings["env"] = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with (
        LocalCluster(options.workers, **settings) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as scratch,
    ):
        folder = Path(scratch) if options.from_disk else None
        if folder is not None:
            client.gather([client.submit(write_block, folder, *pair) for pair in enumerate(sizes)])
        X, y = collections(folder, sizes)
        if folder is None:
            X, y = client.persist([X, y])
            client.gather(client.compute([X.sum(), y.sum()]))
            client.rebalance()  # whichever worker was first up has most of the blocks
        if options.no_reference:
            for _ in range(options.repeats):
                report(client, options, X, y)
        else:
            compare(client, options, X, y)
        print("peak memory of the workers (MB):", [f"{value:.0f}" for value in peak_memory(client).values()])


def compare(client: Client, options: argparse.Namespace, X: Any, y: Any) -> None:
    """Both fits in turns, so that whatever else the machine does slows down both."""
    local_X, local_y = client.compute([X, y], sync=True)
    times: dict[str, list[float]] = {"Dask": [], "in memory": []}
    for _ in range(options.repeats):
        with threadpool_limits(1):  # like the workers
            times["Dask"].append(report(client, options, X, y))
        with threadpool_limits(options.threads or options.workers):
            start, used = time.perf_counter(), time.process_time()
            model = exclusivity.ERMClassifier(30, p=options.p, tol=options.tol).fit(local_X, local_y)
            times["in memory"].append(time.perf_counter() - start)
            print(
                f"in memory: {times['in memory'][-1]:.2f} s, objective {model.objective_[0]:.12g}, "
                f"processor seconds {time.process_time() - used:.2f}"
            )
    medians = {name: float(np.median(values)) for name, values in times.items()}
    ratio = medians["Dask"] / medians["in memory"]
    shown = ", ".join(f"{name} {value:.2f} s" for name, value in medians.items())
    print(f"medians of {options.repeats}: {shown}, ratio {ratio:.2f}")


def report(client: Client, options: argparse.Namespace, X: Any, y: Any) -> float:
    model = ERMClassifier(30, p=options.p, tol=options.tol)
    sent, used, start = sent_bytes(client), processor_seconds(client), time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    used = [after - before for after, before in zip(processor_seconds(client), used, strict=True)]
    print(
        f"Dask: {seconds:.2f} s, objective {model.objective_[0]:.12g}, gap {model.dual_gap_[0]:.1e}, "
        f"{model.history_[0].passes[-1]:.0f} passes, {sent_bytes(client) - sent:,} bytes between workers, "
        f"processor seconds {used[0]:.2f} here, {', '.join(f'{value:.2f}' for value in used[1:])} of workers"
    )
    return seconds


if __name__ == "__main__":
    main()
