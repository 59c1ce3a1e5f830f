"""How many bytes our values take, told to Dask: it plans memory and transfers by that.

Without a word from us it would count the shell of an object only, some fifty bytes for a block of a hundred
megabytes, and neither spill in time nor compute where the data are.
"""

from __future__ import annotations

from dask.sizeof import sizeof

from exclusivity.dask.blocks import BlockFacts, LabelledBlock
from exclusivity.rows.design import RowList
from exclusivity.rows.source import RowBlock
from exclusivity.solvers.newton.barrier import Barrier, BarrierSums
from exclusivity.solvers.newton.run import LossSums
from exclusivity.solvers.newton.sums import WorkingSet


def bytes_of(value: object) -> int:
    """The bytes of everything that an object holds."""
    return int(sum(sizeof(part) for part in vars(value).values()))


for kind in (Barrier, BarrierSums, BlockFacts, LabelledBlock, LossSums, RowBlock, RowList, WorkingSet):
    sizeof.register(kind, bytes_of)
