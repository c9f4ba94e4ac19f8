"""What the prompt waits for: neither the syntax trees nor plans nor Lark, whose many classes take a third of the import."""

from __future__ import annotations

import subprocess
import sys

PROMPT = """
import sys
import graphdb
import graphdb.shell.repl
import graphdb.shell.prompt
with graphdb.connect() as db:
    late = sorted(name for name in sys.modules if name.startswith(("graphdb.grammar.syntax", "graphdb.plan", "lark")))
    assert not late, late
    assert db.query("RETURN same(1, 1) AND mod(7, 4) = 3").scalar() is True
    assert "graphdb.grammar.syntax" in sys.modules
"""


def test_the_prompt_imports_no_syntax_and_no_plans() -> None:
    subprocess.run([sys.executable, "-c", PROMPT], check=True, timeout=120)
