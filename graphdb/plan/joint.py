"""Counts of several patterns over one data graph as one: what their sums of products have in common is counted once.

The sums of patterns of one size share most of what they add up: the quotients of one are subpatterns of others
(:mod:`graphdb.plan.counting.inclusion_exclusion`).  Of the 79 products that the 21 connected patterns of five vertices
take, 32 are different.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from graphdb.plan.counting.plan import CountingPlan, added_up, parts_of
from graphdb.plan.counting.programs import Part
from graphdb.plan.physical import PhysicalPlan


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class JointCount:
    """The numbers of matches of several plans.

    Attributes
    ----------
    plans
        The plans, each of which counts as a sum of products.
    counting
        The terms of all, one plan after the other.
    ends
        Where the terms of each plan end.
    cache
        An executor's, as that of a plan.
    """

    plans: tuple[PhysicalPlan, ...]
    counting: CountingPlan
    ends: tuple[int, ...]
    cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, plans: Sequence[PhysicalPlan]) -> JointCount:
        """Join plans over one data graph, each made with ``counting="always"``, of patterns without candidate sets.

        Raises
        ------
        ValueError
            A plan is another kind of plan.
        """
        sums = [plan.counting for plan in plans if plan.counting is not None]
        sums = [_without_terms(each) if any(not len(found) for found in each.filters) else each for each in sums]
        if len(sums) < len(plans) or not plans or any(each.filters or each.root >= 0 for each in sums):
            raise ValueError("plans are joined that count all matches of patterns without candidates as sums")
        ends, costs = [0], dict[Part, float]()
        for each in sums:
            ends.append(ends[-1] + len(each.terms))
            costs.update((part, part.cost) for term in each.terms for part in term.parts)
        added = sum(part.cost for each in sums for part in {part for term in each.terms for part in term.parts})
        # What a plan costs beside its parts, and what parts cost more in large vectors, stays in proportion.
        proportion = sum(costs.values()) / added if added else 1.0
        counting = CountingPlan(
            terms=tuple(term for each in sums for term in each.terms),
            filters=(),
            partitions={relation: found for each in sums for relation, found in each.partitions.items()},
            oriented={relation: found for each in sums for relation, found in each.oriented.items()},
            vertices=sums[0].vertices,
            dtype=sums[0].dtype,
            cost=sum(each.cost for each in sums) * proportion,
            instead_of=sum(each.instead_of for each in sums),
        )
        return cls(tuple(plans), counting, tuple(ends[1:]))

    @property
    def parts(self) -> set[Part]:
        """What is added up, each once."""
        return {part for term in self.counting.terms for part in term.parts}

    def numbers_of(self, sums: Sequence[int]) -> list[int]:
        """Return the number of matches of each plan, given what the parts add up to, in the order of the terms."""
        return self.numbers(dict(zip(parts_of(self.counting.terms), sums, strict=True)))

    def numbers(self, totals: Mapping[Part, int]) -> list[int]:
        """Return the number of matches of each plan, given what each part adds up to."""
        terms = self.counting.terms
        return [added_up(terms[begin:end], totals) for begin, end in pairwise((0, *self.ends))]


def _without_terms(plan: CountingPlan) -> CountingPlan:
    """Of a pattern with a vertex that has no candidates: there is nothing to add up."""
    return replace(plan, terms=(), filters=(), partitions={}, oriented={}, cost=0.0)
