"""From the graph to files and objects: what loads again as the same graph, and what other tools read."""
