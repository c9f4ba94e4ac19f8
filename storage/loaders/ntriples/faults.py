"""The faults of a line of N-Triples or N-Quads, by number, with their messages."""

from __future__ import annotations

(
    OK,
    SUBJECT,
    LITERAL_SUBJECT,
    PREDICATE,
    PREDICATE_NOT_IRI,
    OBJECT,
    DOT,
    LINE_END,
    IRI_CHARACTER,
    IRI_END,
    IRI_RELATIVE,
    IRI_ESCAPE,
    IRI_ESCAPED,
    STRING_ESCAPE,
    STRING_END,
    HEXADECIMAL,
    CODE_POINT,
    BAD_TAG,
    DATATYPE_IRI,
    LABEL,
    UTF8,
    DIRECTIVE,
    FOURTH,
    TERM_END,
    TERM_DEPTH,
    LONG_TAG,
    NO_TAG,
) = range(27)
"""What is wrong with a line."""

DEEPEST = 1_000
"""How deep triple terms may stand within each other: a library that reads them crashes at some ten thousand."""

MESSAGES: dict[int, tuple[str, str | None]] = {
    SUBJECT: ("expected a subject: an IRI <…> or a blank node _:…", None),
    LITERAL_SUBJECT: (
        "expected a subject: an IRI <…> or a blank node _:…",
        "a literal can only be an object",
    ),
    DIRECTIVE: (
        "expected a subject: an IRI <…> or a blank node _:…",
        "N-Triples has no directives; is this a Turtle file?",
    ),
    PREDICATE: ("expected a predicate: an IRI <…>", None),
    PREDICATE_NOT_IRI: ("expected a predicate: an IRI <…>", "only an IRI can be a predicate"),
    OBJECT: (
        'expected an object: an IRI <…>, a blank node _:… or a literal "…"',
        None,
    ),
    DOT: ("expected '.' after the object", "in N-Triples each line is one triple"),
    LINE_END: ("expected the end of the line or a comment after '.'", "in N-Triples each line is one triple"),
    IRI_CHARACTER: (
        "this character cannot stand in an IRI",
        'write it percent-encoded; spaces, < " { } | ^ ` and control characters are not allowed',
    ),
    IRI_END: ("the IRI has no closing '>'", None),
    IRI_RELATIVE: ("expected an absolute IRI, with a scheme such as http:", None),
    IRI_ESCAPE: (r"in an IRI only the escapes \uXXXX and \UXXXXXXXX are allowed", None),
    IRI_ESCAPED: ("this escape stands for a character that cannot stand in an IRI", "write it percent-encoded"),
    STRING_ESCAPE: (
        "unknown escape in a literal",
        r"the escapes are \t \b \n \r \f \" \' \\ \uXXXX \UXXXXXXXX",
    ),
    STRING_END: ("the literal has no closing '\"'", r"a line break within a literal is written \n"),
    HEXADECIMAL: (r"expected hexadecimal digits: four after \u, eight after \U", None),
    CODE_POINT: ("this escape stands for no character: a surrogate, or beyond U+10FFFF", None),
    BAD_TAG: ("expected a language tag such as en or de-AT after '@'", None),
    LONG_TAG: ("a part of a language tag has eight letters and digits at most", "see BCP 47 for language tags"),
    NO_TAG: (
        "this datatype is for literals with a language",
        'write "…"@en, or leave the datatype away for a text in no language',
    ),
    DATATYPE_IRI: ("expected a datatype: ^^ and an IRI <…>", None),
    LABEL: ("expected a blank node label after '_:'", "it begins with a letter, a digit or _"),
    FOURTH: ("expected '.' after the object", "a fourth term names a graph: this may be an N-Quads file (.nq)"),
    TERM_DEPTH: (f"triple terms stand within each other more than {DEEPEST:,} deep", None),
    TERM_END: ("expected ')>>' after the triple term", None),
    UTF8: ("these bytes are not UTF-8", "convert the file to UTF-8"),
}
"""What a message says, and what would be right."""
