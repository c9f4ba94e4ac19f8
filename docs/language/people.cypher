CREATE (ada:Person {name: 'Ada', born: 1815}), (charles:Person {name: 'Charles', born: 1791}),
       (mary:Person {name: 'Mary', born: 1780}), (william:Person:Lord {name: 'William', born: 1805}),
       (engine:Machine {name: 'Analytical Engine', designed: 1837}),
       (mary)-[:KNOWS {since: 1825}]->(ada), (mary)-[:KNOWS {since: 1828}]->(charles), (ada)-[:KNOWS {since: 1833}]->(charles),
       (ada)-[:MARRIED {year: 1835}]->(william), (charles)-[:DESIGNED]->(engine), (ada)-[:DESCRIBED {year: 1843}]->(engine);
