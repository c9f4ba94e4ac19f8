"""Queries drawn from graphs: random walks over labelled graphs and RDF triples, and R-MAT graphs to draw motifs of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass
class Lists:
    """Neighbours by vertex, and a label of each (or none)."""

    labels: list[int] | None
    begin: Ints
    ends: Ints

    @classmethod
    def of(cls, labels: list[int] | None, vertices: int, a: Ints, b: Ints) -> Lists:
        """From undirected edges."""
        sources, ends = np.concatenate([a, b]), np.concatenate([b, a])
        order = np.argsort(sources, kind="stable")
        return cls(labels, np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=vertices))]), ends[order])

    def near(self, vertex: int) -> Ints:
        """The neighbours of a vertex."""
        return self.ends[self.begin[vertex] : self.begin[vertex + 1]]

    def walk(self, rng: np.random.Generator, least: int, most: int) -> str:
        """A query: the vertices of a random walk, the edges that it took, and others between them at some density."""
        wanted, density = int(rng.integers(least, most + 1)), float(rng.choice([0.0, 0.5, 1.0]))
        while True:
            at = int(self.ends[rng.integers(len(self.ends))])
            found, taken = [at], set[tuple[int, int]]()
            for _ in range(20 * wanted):
                following = int(rng.choice(self.near(at)))
                if following not in found and len(found) < wanted:
                    found.append(following)
                    taken.add((min(at, following), max(at, following)))
                at = following if following in found else at
            if len(found) == wanted:
                break
        for a, b in combinations(sorted(found), 2):
            if rng.random() < density and b in self.near(a):
                taken.add((a, b))
        number = {vertex: i for i, vertex in enumerate(found)}
        labels = "" if self.labels is None else ", ".join(f"(v{i}:L{self.labels[v]})" for v, i in number.items()) + ", "
        edges = ", ".join(f"(v{number[a]})-[:e]-(v{number[b]})" for a, b in sorted(taken))
        return f"MATCH DIFFERENT NODES {labels}{edges} RETURN count(*)"


def rmat(scale: int, factor: int, seed: int = 1) -> tuple[Ints, Ints]:
    """The ends of the edges of an R-MAT graph (Chakrabarti, Zhan, Faloutsos, SDM 2004), each once, the smaller first."""
    rng, m = np.random.default_rng(seed), factor << scale
    u, v = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for _ in range(scale):
        quarter = rng.choice(4, m, p=(0.57, 0.19, 0.19, 0.05))
        u, v = u << 1 | quarter >> 1, v << 1 | quarter & 1
    pairs = np.unique(np.sort(rng.permutation(1 << scale)[np.stack([u, v])], axis=0), axis=1)
    first, second = pairs[:, pairs[0] != pairs[1]]
    return first, second


def triples_walk(triples: list[tuple[str, str, str]], rng: np.random.Generator, near: dict[str, list[int]]) -> str:
    """A walk over RDF triples as a query: each of them joins a vertex that an earlier one has; some are constants."""
    wanted, chosen = int(rng.integers(3, 9)), [int(rng.integers(len(triples)))]
    for _ in range(30 * wanted):
        subject, _, object = triples[int(rng.choice(chosen))]
        further = int(rng.choice(near[subject if rng.random() < 0.6 else object]))
        if further not in chosen:
            chosen.append(further)
        if len(chosen) == wanted:
            break
    terms = dict.fromkeys(term for i in chosen for term in triples[i][::2])
    names = {term: f"(x{i})" for i, term in enumerate(terms)}
    for term in list(terms)[1:]:
        if rng.random() < 0.15:
            names[term] = f"({term})"
    edges = ", ".join(f"{names[triples[i][0]]}-[:{triples[i][1]}]->{names[triples[i][2]]}" for i in chosen)
    return f"MATCH REPEATABLE ELEMENTS {edges} RETURN count(*)"
