"""The triples of a graph whose partitions are in a folder (:mod:`.partition_files`), as a worker reads them.

A label's file is fetched when the label is first asked for, and stays on the worker's disk.  What was fetched is
checked against the manifest's digests, and ids against the numbers of terms: nothing else is between a file and the
kernels.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.cluster.partition_files import FORMAT, MANIFEST, Partitions, digest_of, digest_of_file, reaching
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.errors import StorageError
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.sorted_sets import both, unique
from graphdb.storage.graph.degree_sketch import DegreeSketch
from graphdb.storage.graph.source import LabelStatistics

Ints = NDArray[np.int64]


class PartitionSource:
    """A :class:`~graphdb.storage.graph.source.TripleSource` over a folder of partitions.

    Parameters
    ----------
    partitions
        The folder.
    cache
        Where fetched files stay.  Files that the local file system has are read where they are.

    Raises
    ------
    StorageError
        The folder cannot be reached, has changed, or was written by another version.
    """

    def __init__(self, partitions: Partitions, cache: Path) -> None:
        import duckdb

        self._partitions, self._cache, self._lock = partitions, cache, threading.RLock()
        with reaching(partitions.url) as (files, path):
            text = files.cat_file(f"{path}/{MANIFEST}")
        if digest_of(text) != partitions.digest:
            raise StorageError(f"'{partitions.url}' has changed since the cluster's client wrote it")
        manifest: dict[str, Any] = json.loads(text)
        if manifest["format"] != FORMAT:
            raise StorageError(
                f"'{partitions.url}' has format {manifest['format']}, expected {FORMAT}",
                hint="install the same version of graphdb on all hosts",
            )
        self.resources: int = manifest["resources"]
        self.literals: int = manifest["literals"]
        self.type_label: int | None = manifest["type_label"]
        self._labels = {int(label): said for label, said in manifest["labels"].items()}
        self._classes = {tuple(row[:3]): (row[3], row[4]) for row in manifest["classes"]}
        self._complete: bool = manifest["complete"]
        self._connection = duckdb.connect(":memory:", config={"threads": 1, "python_enable_replacements": False})

    def edge_labels(self) -> tuple[int, ...]:
        """All edge labels, sorted."""
        return tuple(self._labels)

    def statistics(self, label: int) -> LabelStatistics:
        """The statistics of one label."""
        said = self._labels.get(label)
        return LabelStatistics() if said is None else LabelStatistics(**said["statistics"])

    def degrees(self, label: int, direction: int) -> DegreeSketch:
        """How the degrees of one label in a direction are distributed."""
        said = self._labels.get(label)
        return DegreeSketch(() if said is None else tuple(map(tuple, said["degrees"][direction])))

    def at_class(self, label: int, direction: int, class_id: int) -> tuple[int, int] | None:
        """(edges at vertices with a vertex label, such vertices); None for pairs that were too rare."""
        return self._classes.get((label, direction, class_id), (0, 0) if self._complete else None)

    def edges(self, label: int) -> tuple[Ints, Ints]:
        """Subjects and objects of one label as vertex ids, sorted by (subject, object)."""
        return self._read(label, "edges")

    def subjects(self, label: int, object: int) -> Ints:
        """Subjects of the triples of one label with one object, sorted."""
        subjects, objects = self.edges(label)
        found: Ints = subjects[objects == object]
        return found

    def occurring(self, resources: Ints) -> Ints:
        """Those of some resources that are a subject, or an object of anything but ``rdf:type``."""
        found = [np.empty(0, np.int64)]
        for label, subjects, objects in self.triples():
            found += [subjects] if label == self.type_label else [subjects, objects]
        return both(resources, unique(np.concatenate(found)))

    def triples(self) -> Iterator[tuple[int | Ints, Ints, Ints]]:
        """Labels, subjects and objects of all triples: label by label."""
        for label in self._labels:
            yield label, *self.edges(label)

    def any_edges(self) -> tuple[Ints, Ints, Ints]:
        """Labels, subjects and objects of all edges between resources other than ``rdf:type``."""
        return self._between_resources("edges")

    def parallel_edges(self, labels: tuple[int, ...] | None) -> tuple[Ints, Ints, Ints]:
        """Labels, subjects, objects of the edges of some labels (None: as :meth:`any_edges`), parallel ones apart."""
        if labels is None:
            return self._between_resources("parallel")
        return _joined([(label, *self._read(label, "parallel")) for label in self._labels if label in labels])

    def _between_resources(self, what: str) -> tuple[Ints, Ints, Ints]:
        found = []
        for label, said in self._labels.items():
            if label != self.type_label and said["statistics"]["resource_triples"]:
                subjects, objects = self._read(label, what)
                among = objects < self.resources
                found.append((label, subjects[among], objects[among]))
        return _joined(found)

    def _read(self, label: int, what: str) -> tuple[Ints, Ints]:
        """The rows of a label's file; without parallel edges, those are its edges."""
        said = self._labels.get(label, {})
        file = said.get(what) or said.get("edges")
        if file is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        with self._lock:
            path = self._local(file)
            rows = rows_of(self._connection, "SELECT subject, object FROM read_parquet($1)", [str(path)])
        subjects, objects = (values(rows.column(name)).astype(np.int64) for name in ("subject", "object"))
        if not (
            len(subjects) == file["rows"]
            and subjects.min() >= 0
            and subjects.max() < self.resources
            and objects.min() >= 0
            and objects.max() < self.resources + self.literals
        ):
            raise StorageError(f"'{self._partitions.url}/{file['name']}' has ids that are no terms")
        return subjects, objects

    def _local(self, file: dict[str, Any]) -> Path:
        """Where a file is on this host's disk, fetched when it is first asked for."""
        here: Path = self._cache / file["name"]
        if here.exists():
            return here
        with reaching(self._partitions.url) as (files, path):
            there = f"{path}/{file['name']}"
            if "file" in ((files.protocol,) if isinstance(files.protocol, str) else files.protocol):
                found = Path(there)
            else:
                self._cache.mkdir(parents=True, exist_ok=True)
                found = here.with_suffix(".part")
                files.get_file(there, str(found))
            if digest_of_file(found) != file["digest"]:
                raise StorageError(f"'{self._partitions.url}/{file['name']}' has changed since it was written")
        if found.suffix == ".part":
            os.replace(found, here)
            return here
        return found


def _joined(pieces: list[tuple[int, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    """Labels, subjects and objects of several labels, one after the other."""
    empty = np.empty(0, np.int64)
    labels = [np.full(len(subjects), label) for label, subjects, _ in pieces]
    subjects, objects = ([piece[column] for piece in pieces] for column in (1, 2))
    return tuple(np.concatenate([empty, *columns]) for columns in (labels, subjects, objects))  # type: ignore[return-value]
