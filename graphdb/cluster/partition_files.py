"""A graph's triples in a folder that all hosts reach: one Parquet file for each edge label, and a manifest of them.

The folder is a path, or a URL of anything that fsspec knows (``s3://``, ``gs://``, ``abfs://``, ``hdfs://`` …).  A
state of a graph has a folder of its own in it.  The manifest is written last, so a folder that has one is whole.  It
holds the statistics that plans are made by: a worker that reads it makes the plan that the client has.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import GraphDBError, NotSupportedError, StorageError
from graphdb.storage.arrays.arrow import table_of
from graphdb.storage.file.parquet import ParquetFile
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.triples import TripleStore

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

Ints = NDArray[np.int64]

FORMAT = 1
"""Of the folder: readers refuse any other."""
MANIFEST = "manifest.json"
_MEMORY = 1 << 30
"""Bytes of memory for the rows of the file that is written."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """A graph's folder, as it is sent to workers."""

    url: str
    digest: str
    """Of the manifest, which has the digests of all other files."""


@contextmanager
def reaching(url: str) -> Iterator[tuple[AbstractFileSystem, str]]:
    """The file system of a URL, and the path in it.

    Raises
    ------
    NotSupportedError
        What its protocol needs is not installed.
    StorageError
        There is no such protocol, or the file system gave an error within the block.
    """
    from fsspec.core import url_to_fs

    try:
        files, path = url_to_fs(url)
        yield files, path
    except GraphDBError:
        raise
    except ImportError as error:
        raise NotSupportedError(
            f"'{url}' needs a package: {error}", hint="pip install it, here and on workers"
        ) from error
    except ValueError as error:
        raise StorageError(f"'{url}': {error}") from error
    except Exception as error:  # each protocol has errors of its own
        if isinstance(error, OSError) and error.filename is not None:
            raise StorageError(f"'{url}': {error.strerror}: '{error.filename}'") from error
        raise StorageError(f"'{url}': {type(error).__name__}: {error}") from error


def digest_of(data: bytes) -> str:
    """A digest by which a file is known."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def published(store: TripleStore, folder: str, state: str, check: Callable[[], None]) -> Partitions:
    """Write a graph's partitions to a folder, unless they are there, and return where workers find them.

    Parameters
    ----------
    store
        The graph's triples.
    folder
        A path or URL; it is made if it is not there.
    state
        A name of the graph's state: of the same name are the same triples.
    check
        Called between two labels; what it raises stops the writing.

    Raises
    ------
    StorageError, NotSupportedError
        See :func:`reaching`.
    """
    url = f"{folder.rstrip('/')}/graph-{state}"
    with reaching(url) as (files, path):
        manifest = f"{path}/{MANIFEST}"
        if not files.exists(manifest):
            files.makedirs(path, exist_ok=True)
            text = json.dumps(_written(store, files, path, check)).encode()
            _put_whole(files, text, manifest)
        else:
            text = files.cat_file(manifest)
    return Partitions(url, digest_of(text))


def _put_whole(files: AbstractFileSystem, data: bytes, path: str) -> None:
    """Write a file that is whole as soon as it has its name: object stores do so, others by a rename."""
    partial = f"{path}.{os.urandom(6).hex()}"
    files.pipe_file(partial, data)
    files.mv(partial, path)


def _written(store: TripleStore, files: AbstractFileSystem, path: str, check: Callable[[], None]) -> dict[str, Any]:
    """Write the files of all labels and return what the manifest says."""
    labels: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="graphdb-") as here:
        for label in store.edge_labels():
            check()
            subjects, objects = store.edges(label)
            said: dict[str, Any] = {
                "statistics": asdict(store.statistics(label)),
                "degrees": [store.degrees(label, direction).buckets for direction in (OUT, IN)],
            }
            name = f"edges-{label}.parquet"
            columns = {"subject": subjects, "object": objects}
            said["edges"] = _put(columns, Path(here) / name, files, f"{path}/{name}")
            _, starts, ends = store.parallel_edges((label,))
            if len(starts) > len(subjects):
                name = f"parallel-{label}.parquet"
                said["parallel"] = _put({"subject": starts, "object": ends}, Path(here) / name, files, f"{path}/{name}")
            labels[str(label)] = said
    pairs, complete = store.class_pairs()
    return {
        "format": FORMAT,
        "resources": store.resources,
        "literals": store.literals,
        "type_label": store.type_label,
        "labels": labels,
        "classes": [[*key, *value] for key, value in pairs.items()],
        "complete": complete,
    }


def _put(columns: dict[str, Ints], here: Path, files: AbstractFileSystem, there: str) -> dict[str, Any] | None:
    """Write a file of vertex ids and return its name, rows and digest; None where it has no rows."""
    rows = len(columns["subject"])
    if not rows:
        return None
    narrow = max(int(column.max()) for column in columns.values()) < 1 << 31
    file = ParquetFile(here, _MEMORY)
    try:
        narrowed = {name: column.astype(np.int32) if narrow else column for name, column in columns.items()}
        file.add(table_of(narrowed))
        file.close()
        files.put_file(str(here), there)
        digest = digest_of_file(here)
    finally:
        file.remove()
    return {"name": here.name, "rows": rows, "digest": digest}


def digest_of_file(path: Path) -> str:
    """The same of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
