"""A generated RDF graph with the shapes of LUBM and WatDiv: universities and their people, who also follow each other,
like products and review them.

Everything follows from a seed and the number of triples wanted; NumPy draws whole columns.  What people are drawn to
(universities, cities, genres, products, each other) is Zipf-distributed, and so are the sizes of predicates: a long
tail of ``tag0`` … ``tag63`` beside ``rdf:type``.  Following closes triangles: half of it stays within a department, a
part goes where those one follows go.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

NAMESPACE = "http://example.org/campus/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

PER_PERSON = 20.4
"""Triples for each person, about."""
TAGS = 64
CATEGORIES, GENRES, RATINGS = 15, 40, 10
STUDENTS = 0.92
"""Of all people; the others are faculty."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The triples of one predicate between two kinds of things; ``objects`` of kind ``""`` are integer literals.

    ``subjects`` and ``objects`` are int64 numbers within their kinds; pairs are distinct.
    """

    predicate: str
    subject: str
    subjects: Ints
    object: str
    objects: Ints


def iri(kind: str, number: int | str = "") -> str:
    """The IRI of a thing by its kind and number, or of a predicate or class by its name."""
    return TYPE if kind == "type" else f"{NAMESPACE}{kind}{number}"


def campus(triples: int, seed: int = 1) -> list[Edges]:
    """Draw a graph of about so many triples."""
    return _Campus(np.random.default_rng(seed), max(int(triples / PER_PERSON), 40)).draw()


@dataclass(slots=True)
class _Campus:
    random: np.random.Generator
    people: int
    edges: list[Edges] = field(default_factory=list)

    def draw(self) -> list[Edges]:
        departments = max(self.people // 430, 2)
        universities = max(departments // 18, 2)
        faculty = max(int(self.people * (1 - STUDENTS)), 4)
        # The first people are the faculty; everybody's department has people all over the range of numbers.
        home = self.random.integers(0, departments, self.people)
        everybody = np.arange(self.people)
        staff, students = everybody[:faculty], everybody[faculty:]
        graduate = self.random.random(len(students)) < 0.22
        self._say(
            "subOrganizationOf",
            "Department",
            np.arange(departments),
            "University",
            self._even(departments, universities),
        )
        self._say("memberOf", "Person", students, "Department", home[students])
        self._say("worksFor", "Person", staff, "Department", home[staff])
        degrees = np.concatenate([staff, students[graduate]])
        self._say("degreeFrom", "Person", degrees, "University", self._zipf(universities, len(degrees), 0.8))
        self._study(home, staff, students, graduate)
        self._publish(staff, students[graduate])
        self._follow(home)
        self._shop()
        self._types(departments, universities, staff, students, graduate)
        return self.edges

    # --- universities

    def _study(self, home: Ints, staff: Ints, students: Ints, graduate: NDArray[np.bool_]) -> None:
        courses = 2 * len(staff)
        teacher = np.repeat(staff, 2)
        self._say("teacherOf", "Person", teacher, "Course", np.arange(courses))
        by_home, first = _grouped(home[teacher])
        taken = self.random.integers(2, 5, len(students))
        student = np.repeat(students, taken)
        self._say("takesCourse", "Person", student, "Course", self._of(by_home, first, home[student]))
        by_home, first = _grouped(home[staff])
        advised = students[graduate | (self.random.random(len(students)) < 0.15)]
        self._say("advisor", "Person", advised, "Person", staff[self._of(by_home, first, home[advised])])

    def _publish(self, staff: Ints, graduates: Ints) -> None:
        publications = self.people // 5
        authors = self.random.integers(1, 5, publications)
        publication = np.repeat(np.arange(publications), authors)
        writers = self.random.permutation(np.concatenate([staff, staff, graduates]))
        writer = writers[self._zipf(len(writers), len(publication), 0.5)]
        self._say("author", "Publication", publication, "Person", writer)

    # --- people

    def _follow(self, home: Ints) -> None:
        degree = np.minimum(self.random.zipf(2.1, self.people) + 1, max(self.people // 50, 8))
        source = np.repeat(np.arange(self.people), degree)
        target = self.random.permutation(self.people)[self._zipf(self.people, len(source), 0.75)]
        near = self.random.random(len(source)) < 0.5
        by_home, first = _grouped(home)
        target[near] = self._of(by_home, first, home[source[near]])
        # A third as many go where somebody goes whom one follows.
        by_source, begin = _grouped(source, self.people)
        via = self.random.integers(0, len(source), len(source) // 3)
        closing = self._of(target[by_source], begin, target[via])
        source, target = np.append(source, source[via]), np.append(target, closing)
        other = source != target
        self._say("follows", "Person", source[other], "Person", target[other])
        self._say("livesIn", "Person", np.arange(self.people), "City", self._zipf(self._cities, self.people, 1.0))
        self._say("age", "Person", np.arange(self.people), "", 16 + self._zipf(70, self.people, 0.6))

    def _shop(self) -> None:
        cities, products, reviews = self._cities, self._products, self.people * 3 // 4
        self._say("country", "City", np.arange(cities), "Country", self._zipf(max(cities // 20, 3), cities, 0.9))
        likes = self.random.poisson(1.6, self.people)
        self._say(
            "likes",
            "Person",
            np.repeat(np.arange(self.people), likes),
            "Product",
            self._zipf(products, int(likes.sum()), 0.8),
        )
        genres = self.random.integers(1, 4, products)
        product = np.repeat(np.arange(products), genres)
        self._say("hasGenre", "Product", product, "Genre", self._zipf(GENRES, len(product), 1.0))
        review = np.arange(reviews)
        self._say("hasReview", "Product", self._zipf(products, reviews, 0.7), "Review", review)
        self._say("reviewer", "Review", review, "Person", self.random.integers(0, self.people, reviews))
        self._say("rating", "Review", review, "", 1 + self._zipf(RATINGS, reviews, 0.4))
        tag, tagged = self._zipf(TAGS, self.people, 1.2), self.random.integers(0, products, self.people)
        topics = max(products // 40, 4)
        for number in range(TAGS):
            marked = tagged[tag == number]
            self._say(f"tag{number}", "Product", marked, "Topic", self._zipf(topics, len(marked), 0.6))

    def _types(
        self, departments: int, universities: int, staff: Ints, students: Ints, graduate: NDArray[np.bool_]
    ) -> None:
        rank = self.random.integers(0, 3, len(staff))
        for number, title in enumerate(("FullProfessor", "AssociateProfessor", "Lecturer")):
            self._type("Person", staff[rank == number], title)
        self._type("Person", students[graduate], "GraduateStudent")
        self._type("Person", students[~graduate], "UndergraduateStudent")
        category = self._zipf(CATEGORIES, self._products, 1.0)
        for number in range(CATEGORIES):
            self._type("Product", np.flatnonzero(category == number), f"Category{number}")
        whole = {"Department": departments, "University": universities, "Course": 2 * len(staff)}
        whole |= {"Publication": self.people // 5, "City": self._cities, "Review": self.people * 3 // 4}
        for kind, count in whole.items():
            self._type(kind, np.arange(count), kind)

    @property
    def _cities(self) -> int:
        return max(self.people // 500, 10)

    @property
    def _products(self) -> int:
        return max(self.people // 8, 10)

    # --- columns

    def _say(self, predicate: str, subject: str, subjects: Ints, object: str, objects: Ints) -> None:
        """Add edges, each once."""
        width = int(objects.max(initial=0)) + 1
        pairs = np.unique(subjects.astype(np.int64) * width + objects)
        self.edges.append(Edges(predicate, subject, pairs // width, object, pairs % width))

    def _type(self, kind: str, numbers: Ints, name: str) -> None:
        """Give things a class, whose name is the object's kind and whose number is none: -1."""
        self.edges.append(Edges("type", kind, np.sort(numbers), name, np.full(len(numbers), -1)))

    def _zipf(self, kinds: int, count: int, exponent: float) -> Ints:
        """So many draws of 0 … kinds - 1, the first most often: the k-th with weight 1 / k ** exponent."""
        weights = np.cumsum(1.0 / np.arange(1, kinds + 1) ** exponent)
        return np.searchsorted(weights, self.random.random(count) * weights[-1]).astype(np.int64)

    def _even(self, count: int, kinds: int) -> Ints:
        return np.arange(count) * kinds // count

    def _of(self, members: Ints, first: Ints, groups: Ints) -> Ints:
        """A random member of each group asked for; of an empty group, the first member of the next."""
        width = np.maximum(first[groups + 1] - first[groups], 1)
        at = first[groups] + (self.random.random(len(groups)) * width).astype(np.int64)
        return members[np.minimum(at, len(members) - 1)]


def _grouped(groups: Ints, count: int | None = None) -> tuple[Ints, Ints]:
    """Members by group, and where each group's begin."""
    members = np.argsort(groups, kind="stable")
    many = int(groups.max(initial=0)) + 1 if count is None else count
    return members, np.searchsorted(groups[members], np.arange(many + 1))


# --- as N-Triples, and as a table for SQL -----------------------------------------------------------------------------


def write(graph: list[Edges], path: Path) -> None:
    """Write N-Triples; DuckDB puts the lines together."""
    import duckdb

    part = path.with_name("part")
    quoted = str(part).replace("'", "''")
    with duckdb.connect() as connection, path.open("wb") as whole:
        for edges in graph:
            connection.register("edges", {"s": edges.subjects, "o": edges.objects})
            line = f"$subject || s || $middle || {_object(edges)} || ' .'"
            plain = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\\x07'"
            connection.execute(f"COPY (SELECT {line} FROM edges) TO '{quoted}' ({plain})", _texts(edges))
            connection.unregister("edges")
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, whole, 1 << 24)
    part.unlink()


def _object(edges: Edges) -> str:
    return "$object" if edges.predicate == "type" else "$object || o || $end"


def _texts(edges: Edges) -> dict[str, str]:
    found = {"subject": f"<{iri(edges.subject)}", "middle": f"> <{iri(edges.predicate)}> "}
    if edges.predicate == "type":
        return found | {"object": f"<{iri(edges.object)}>"}
    if not edges.object:
        return found | {"object": '"', "end": f'"^^<{_INTEGER}>'}
    return found | {"object": f"<{iri(edges.object)}", "end": ">"}


def register(graph: list[Edges], connection: Any) -> None:
    """Make the graph the table ``triple(s, p, o)`` of a DuckDB connection: texts like ``Person7`` and ``follows``."""
    connection.execute("CREATE TABLE triple (s VARCHAR, p VARCHAR, o VARCHAR)")
    for edges in graph:
        connection.register("edges", {"s": edges.subjects, "o": edges.objects})
        named = "$object" if edges.predicate == "type" else "$object || o"
        connection.execute(
            f"INSERT INTO triple SELECT $subject || s, $predicate, {named} FROM edges",
            {"subject": edges.subject, "predicate": edges.predicate, "object": edges.object},
        )
        connection.unregister("edges")


def size(graph: list[Edges]) -> int:
    """How many triples there are."""
    return sum(len(edges.subjects) for edges in graph)


def predicates(graph: list[Edges]) -> Iterator[tuple[str, int]]:
    """Predicates with their numbers of triples, the largest first."""
    sums: dict[str, int] = {}
    for edges in graph:
        sums[edges.predicate] = sums.get(edges.predicate, 0) + len(edges.subjects)
    yield from sorted(sums.items(), key=lambda item: -item[1])
