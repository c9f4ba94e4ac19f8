"""Partitions and other derived structures that follow what changes, instead of being derived anew."""
