"""Ctrl-C while libraries are first imported: the next statement of the process works."""

from __future__ import annotations

import random
import subprocess
import sys

from tests.fuzz import scaled

PROGRAM = r"""
import io, os, signal, sys, threading, traceback

def use():
    import graphdb
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (:A {k: 1})-[:R]->(:B)-[:R]->(:C)")
        assert db.query("MATCH (a)-->(b)-->(c) RETURN count(*)").scalar() == 1
        assert db.load(io.BytesIO(b"<e:a> <e:b> <e:c> ."), format="ttl").triples == 1
        assert db.query("MATCH (n) RETURN n").to_arrow().num_rows == 5
        assert db.query("MATCH (n) WHERE n.k =~ '1|2' RETURN n.k").fetchall() == []
        assert db.load(io.BytesIO(b"<e:a> <e:b> <e:c> .\n" * 100), format="nt").triples == 100

def interrupted(moment):
    imports = 0
    def hook(event, arguments):
        nonlocal imports
        if event == "import":
            imports += 1
            if imports == moment:
                signal.raise_signal(signal.SIGINT)
    sys.addaudithook(hook)
    if moment < 0:
        timer = threading.Timer(-moment / 1000, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
    try:
        use()
        if moment < 0:
            timer.join()
    except KeyboardInterrupt:
        pass
    if moment < 0:
        timer.join()

signal.signal(signal.SIGINT, signal.default_int_handler)
for moment in map(int, sys.argv[1:]):
    child = os.fork()
    if not child:
        try:
            interrupted(moment)
            use()
        except BaseException:
            print(moment)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, moment
"""


def run(moments: list[int]) -> None:
    """Use the database in children of a process that has imported nothing, each interrupted once, and once more."""
    command = [sys.executable, "-c", PROGRAM, *map(str, moments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 30 * len(moments))
    assert done.returncode == 0, done.stdout + done.stderr


def test_at_any_import() -> None:
    """``GRAPHDB_FUZZ`` multiplies the moments; NumPy, imported again, fails."""
    run([200, 600, *random.sample(range(1, 900), scaled(1))])


def test_at_any_time() -> None:
    run([-random.randint(1, 2000) for _ in range(scaled(1))])
