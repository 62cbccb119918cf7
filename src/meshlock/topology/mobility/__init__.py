"""How links come and go: flips, moving nodes with a radio range, and recorded traces."""
