"""What scripts/measure.py measures with real PyTorch, one module for each way of measuring."""
