"""Arrays of numbers: sorted sets, small joins, batches of triples, external sort, and exchange with Arrow."""
