"""The runs of a study, on all cores or a cluster: tables, plots and a report.

May import: algorithms, topology, properties, trace, simulate.
Must not know: how a run is made.
"""
