"""The deterministic simulator: the real core on simulated machines, one seed one run, bit for bit."""
