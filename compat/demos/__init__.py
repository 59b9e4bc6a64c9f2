"""The programs behind `make demo` and `make demo-pipeline`."""
