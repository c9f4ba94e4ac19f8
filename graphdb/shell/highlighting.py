"""The statement language for Pygments: colours for the shell and for documents."""

from __future__ import annotations

import re
from typing import ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

from graphdb.dispatch.completion import KEYWORDS
from graphdb.functions.table import NAMES


class PatternLexer(RegexLexer):  # type: ignore[misc]
    """Patterns, the clauses around them, and enough of SQL to be read beside them."""

    name = "graphdb"
    aliases: ClassVar[list[str]] = ["graphdb"]
    filenames: ClassVar[list[str]] = []
    flags = re.IGNORECASE
    tokens: ClassVar[dict[str, list[tuple[object, ...]]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*|--(?![\[>(])[^\n]*", Comment.Single),
            (r"/\*.*?\*/", Comment.Multiline),
            (r"<[a-z][a-z0-9+.\-]*:[^<>\"{}|^`\\\s]*>", Name.Namespace),
            (r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"", String),
            (r"`[^`]*`", Name),
            (r"\$\$", String.Delimiter),
            (r"\$\w+", Name.Variable),
            (r"(?<=:)[^\W\d]\w*", Name.Class),
            (r"(?<=\.)[^\W\d]\w*", Name.Attribute),
            (words(KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (words(NAMES, prefix=r"\b", suffix=r"\b(?=\s*\()"), Name.Function),
            (r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", Number),
            (r"[^\W\d]\w*", Name),
            (r"->|<-|=~|<>|<=|>=|[-+*/%^=<>|&!]", Operator),
            (r"[()\[\]{},;:.]", Punctuation),
            (r".", Text),
        ]
    }
