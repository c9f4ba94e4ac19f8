"""Matches on several hosts: shares of a run as tasks of a Dask cluster, whose workers have the same graph."""
