"""Questions to the generated graph (:mod:`tests.benchmarks.campus`) in the shapes of LUBM's and WatDiv's queries.

Each is a conjunction of triple patterns under homomorphism and what is wanted of its solutions, and says itself in our
language and in SQL over ``triple(s, p, o)``, an independent engine's way to the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.benchmarks.campus import NAMESPACE, iri


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    Attributes
    ----------
    patterns
        ``?x predicate ?y`` or with a thing (``Person7``) at either end; ``a`` is ``rdf:type``, ``p|q`` either predicate.
    returns
        Variables; none counts solutions.
    form
        ``rows`` are all solutions, ``distinct`` those that differ, ``groups`` those with their numbers.
    """

    name: str
    patterns: tuple[str, ...]
    returns: tuple[str, ...] = ()
    form: str = "rows"

    @property
    def text(self) -> str:
        """In our language."""
        parts = ", ".join(_edge(*pattern.split()) for pattern in self.patterns)
        columns = [_column(name) for name in self.returns]
        if not columns:
            columns = ["count(*)"]
        elif self.form == "groups":
            columns.append("count(*)")
        distinct = "DISTINCT " if self.form == "distinct" else ""
        return f"MATCH REPEATABLE ELEMENTS {parts} RETURN {distinct}{', '.join(columns)}"

    @property
    def sql(self) -> str:
        """In SQL."""
        tables, where, places = [], [], dict[str, str]()
        for number, pattern in enumerate(self.patterns):
            subject, predicate, object = pattern.split()
            tables.append(f"triple t{number}")
            names = ", ".join(f"'{name}'" for name in predicate.split("|"))
            where.append(f"t{number}.p IN ({names})" if predicate != "a" else f"t{number}.p = 'type'")
            for column, term in (("s", subject), ("o", object)):
                place = f"t{number}.{column}"
                if not term.startswith("?"):
                    where.append(f"{place} = '{term}'")
                elif term in places:
                    where.append(f"{place} = {places[term]}")
                else:
                    places[term] = place
        found = [places[f"?{name}"] for name in self.returns]
        columns = ", ".join(found) if found else "count(*)"
        if self.form == "groups":
            columns += ", count(*)"
        distinct = "DISTINCT " if self.form == "distinct" else ""
        grouped = f" GROUP BY {', '.join(found)}" if self.form == "groups" else ""
        return f"SELECT {distinct}{columns} FROM {', '.join(tables)} WHERE {' AND '.join(where)}{grouped}"


def _edge(subject: str, predicate: str, object: str) -> str:
    if predicate == "a":
        return f"{_end(subject)[:-1]}:<{iri(object)}>)"
    named = "|".join(f"<{iri(name)}>" for name in predicate.split("|"))
    return f"{_end(subject)}-[:{named}]->{_end(object)}"


def _end(term: str) -> str:
    return f"({term[1:]})" if term.startswith("?") else f"(<{NAMESPACE}{term}>)"


def _column(name: str) -> str:
    return name if name in LITERALS else f"iri({name})"


LITERALS = ("age", "rating")

QUESTIONS = (
    # --- points: LUBM 1, 3, 4, 5, 7; WatDiv's linear ones
    Question("P1 course's graduates", ("?x a GraduateStudent", "?x takesCourse Course7"), ("x",)),
    Question("P2 author's publications", ("?x a Publication", "?x author Person3"), ("x",)),
    Question(
        "P3 department's professors",
        ("?x a FullProfessor", "?x worksFor Department1", "?x degreeFrom ?u", "?x age ?age"),
        ("x", "u", "age"),
    ),
    Question("P4 person's follows' likes", ("Person9 follows ?y", "?y likes ?p"), ("y", "p")),
    Question(
        "P5 teacher's students", ("Person5 teacherOf ?c", "?x takesCourse ?c", "?x a UndergraduateStudent"), ("x", "c")
    ),
    # --- stars
    Question(
        "S1 a city's people",
        ("?x livesIn City0", "?x memberOf ?d", "?x age ?age", "?x likes ?p"),
        ("x", "d", "age", "p"),
    ),
    Question("S2 all people", ("?x livesIn ?c", "?x memberOf ?d", "?x age ?age", "?x likes ?p", "?x takesCourse ?k")),
    Question("S3 category's products", ("?p a Category0", "?p hasGenre ?g", "?p hasReview ?r", "?p tag0|tag1|tag2 ?t")),
    Question("S4 reviews", ("?r reviewer ?u", "?r rating ?rating", "?p hasReview ?r"), ("r", "u", "rating", "p")),
    Question(
        "S5 graduates' rows",
        ("?x a GraduateStudent", "?x memberOf ?d", "?x degreeFrom ?u", "?x takesCourse ?c", "?x advisor ?a"),
        ("x", "d", "u", "c", "a"),
    ),
    # --- snowflakes
    Question(
        "F1 reviewers of a genre",
        ("?p hasGenre Genre1", "?p hasReview ?r", "?r reviewer ?u", "?u livesIn ?c", "?c country Country1"),
        ("p", "r", "u", "c"),
    ),
    Question(
        "F2 authors' universities",
        ("?b author ?x", "?x worksFor ?d", "?d subOrganizationOf ?v", "?x degreeFrom ?u", "?x livesIn ?c"),
    ),
    Question(
        "F3 readers of a product's reviews",
        (
            "?p a Category1",
            "?p hasReview ?r",
            "?r reviewer ?u",
            "?u likes ?q",
            "?q hasGenre Genre0",
            "?u memberOf ?d",
            "?d subOrganizationOf ?v",
        ),
    ),
    # --- chains
    Question("C1 follows 3, likes", ("?a follows ?b", "?b follows ?c", "?c follows ?d", "?d likes ?p")),
    Question(
        "C2 a department's follows 2", ("?a memberOf Department0", "?a follows ?b", "?b follows ?c"), ("a", "b", "c")
    ),
    Question("C3 follows' likes", ("?a follows ?b", "?b likes ?p"), ("a", "b", "p")),
    Question("C4 follows 2", ("?a follows ?b", "?b follows ?c"), ("a", "b", "c")),
    Question("C5 reviewers' tagged likes", ("?r reviewer ?u", "?u likes ?p", "?p tag0 ?t"), ("r", "u", "p", "t")),
    # --- triangles and other cycles: LUBM 2, 9
    Question(
        "T1 home university",
        ("?x a GraduateStudent", "?x memberOf ?d", "?d subOrganizationOf ?u", "?x degreeFrom ?u"),
        ("x", "d", "u"),
    ),
    Question("T2 advisor's course", ("?x advisor ?y", "?y teacherOf ?c", "?x takesCourse ?c"), ("x", "y", "c")),
    Question("T3 follows transitively", ("?a follows ?b", "?b follows ?c", "?a follows ?c")),
    Question("T4 follows in a circle", ("?a follows ?b", "?b follows ?c", "?c follows ?a")),
    Question("T5 follows transitively, rows", ("?a follows ?b", "?b follows ?c", "?a follows ?c"), ("a", "b", "c")),
    Question("T6 follows who likes the same", ("?a follows ?b", "?a likes ?p", "?b likes ?p")),
    Question(
        "T7 … in one department", ("?a follows ?b", "?a memberOf ?d", "?b memberOf ?d", "?a likes ?p", "?b likes ?p")
    ),
    Question("T8 square of follows and likes", ("?a follows ?b", "?a follows ?c", "?b likes ?p", "?c likes ?p")),
    Question(
        "T9 followed in common, likes in common",
        ("?a follows ?c", "?b follows ?c", "?a likes ?p", "?b likes ?p", "?c likes ?p"),
    ),
    # --- heavy: many solutions on the way to the answer
    Question("H1 two followed in common", ("?a follows ?b", "?c follows ?b", "?a follows ?d", "?c follows ?d")),
    Question("H2 neighbours who like the same", ("?a livesIn ?c", "?b livesIn ?c", "?a likes ?p", "?b likes ?p")),
    Question(
        "H3 reviewers of the same two",
        ("?p hasReview ?r", "?r reviewer ?u", "?u likes ?q", "?q hasReview ?s", "?s reviewer ?v", "?v likes ?p"),
    ),
    Question(
        "H4 four who follow transitively",
        ("?a follows ?b", "?a follows ?c", "?a follows ?d", "?b follows ?c", "?b follows ?d", "?c follows ?d"),
    ),
    Question(
        "H5 follows 2, likes, rows",
        ("?a follows ?b", "?b follows ?c", "?c likes ?p", "?p a Category0"),
        ("a", "b", "c", "p"),
    ),
    Question(
        "H6 likes the same in a department, rows",
        ("?a memberOf ?d", "?b memberOf ?d", "?a likes ?p", "?b likes ?p"),
        ("a", "b", "p"),
    ),
    Question(
        "H7 students of one course who follow",
        ("?a takesCourse ?k", "?b takesCourse ?k", "?a follows ?b", "?a livesIn ?c", "?b livesIn ?c"),
        ("a", "b", "k"),
        "distinct",
    ),
    Question(
        "H8 likes in common by city", ("?a livesIn ?c", "?b livesIn ?c", "?a likes ?p", "?b likes ?p"), ("c",), "groups"
    ),
    # --- DISTINCT and groups
    Question("D1 liked products", ("?a follows ?b", "?b likes ?p"), ("p",), "distinct"),
    Question("D2 people and what their follows like", ("?a follows ?b", "?b likes ?p"), ("a", "p"), "distinct"),
    Question("D3 people with such a triangle", ("?a follows ?b", "?b follows ?c", "?a follows ?c"), ("a",), "distinct"),
    Question("G1 likes by city", ("?x livesIn ?c", "?x likes ?p"), ("c",), "groups"),
    Question("G2 follows' likes by genre", ("?a follows ?b", "?b likes ?p", "?p hasGenre ?g"), ("g",), "groups"),
    Question("G3 triangles by person", ("?a follows ?b", "?b follows ?c", "?a follows ?c"), ("a",), "groups"),
    Question("G4 likes by city and genre", ("?x livesIn ?c", "?x likes ?p", "?p hasGenre ?g"), ("c", "g"), "groups"),
    Question("G5 same likes by product", ("?a follows ?b", "?a likes ?p", "?b likes ?p"), ("p",), "groups"),
    Question(
        "G6 follows of follows by ends' cities",
        ("?a follows ?b", "?a livesIn ?c", "?b livesIn ?d"),
        ("c", "d"),
        "groups",
    ),
)
