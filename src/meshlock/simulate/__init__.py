"""A laboratory in one process: virtual clock, links, workloads, measures."""
