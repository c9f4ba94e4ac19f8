"""What a statement runs in: the state of an open database, versions of its data, and what SQL text may name and do."""
