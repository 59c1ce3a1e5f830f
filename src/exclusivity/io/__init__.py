"""Files: data sets of the paper."""

from exclusivity.io.datasets import load_dataset

__all__ = ["load_dataset"]
