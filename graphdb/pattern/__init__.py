"""The logical pattern: names become ids (:mod:`.bind`), clauses become one pattern graph (:mod:`.graph`)."""
