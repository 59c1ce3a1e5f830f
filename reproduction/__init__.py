"""The experiments of X. Guo, "Exclusivity Regularized Machine" (arXiv:1603.08318), run again and judged."""
