"""Many runs from one study file: on all cores or on a cluster, with tables, plots and a report."""
