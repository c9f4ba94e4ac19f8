"""How classes are made: records, and attributes that are computed once."""
