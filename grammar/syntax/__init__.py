"""The syntax tree of a statement: frozen nodes, each with the span of text it came from.

Nothing here knows a catalog: names stay as written, and :mod:`graphdb.pattern.bind` gives them their meaning.
Spans do not take part in equality, so two trees are equal when their statements say the same.
"""

from graphdb.grammar.syntax.clauses import *
from graphdb.grammar.syntax.expressions import *
from graphdb.grammar.syntax.names import *
from graphdb.grammar.syntax.nodes import *
from graphdb.grammar.syntax.patterns import *
from graphdb.grammar.syntax.queries import *
from graphdb.grammar.syntax.statements import *
