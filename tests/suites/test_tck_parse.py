"""openCypher's own scenarios, as text: what openCypher accepts parses, or is named as not supported yet."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest

from graphdb.common.errors import NotSupportedError, ParseError
from graphdb.grammar.parser import parse_script
from graphdb.grammar.syntax import Composite, Query

SHARED = pathlib.Path(os.environ.get("GRAPHDB_SHARED", pathlib.Path(__file__).resolve().parents[2] / "../shared"))
SCENARIOS = SHARED / "suites" / "tck" / "scenarios.json"
pytestmark = pytest.mark.skipif(not SCENARIOS.exists(), reason=f"openCypher's scenarios are not at {SCENARIOS}")


@pytest.fixture(scope="module")
def scenarios() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(SCENARIOS.read_text(encoding="utf-8"))["scenarios"]
    assert len(found) > 2000
    return found


def is_syntax_error(scenario: dict[str, Any]) -> bool:
    return bool(scenario["expect"].get("error_type") == "SyntaxError")


def test_no_scenario_that_gives_rows_is_a_parse_error(scenarios: list[dict[str, Any]]) -> None:
    failures = []
    for scenario in scenarios:
        texts = [*scenario["setup"], *([] if is_syntax_error(scenario) else [scenario["query"]])]
        for text in texts:
            try:
                parse_script(text)
            except NotSupportedError:
                pass
            except ParseError as error:
                failures.append(f"{scenario['id']}: {error}")
    assert not failures, "\n".join(failures)


def test_core_matching_parses(scenarios: list[dict[str, Any]]) -> None:
    """Everything parses, and nothing is left out."""
    refused = []
    for scenario in scenarios:
        if scenario["expect"]["kind"] != "error":
            try:
                assert isinstance(parse_script(scenario["query"])[0], (Query, Composite))
            except NotSupportedError as error:
                refused.append(f"{scenario['id']}: {error}")
    assert not refused, "\n".join(refused)


def test_misspelt_text_is_refused(scenarios: list[dict[str, Any]]) -> None:
    details = {
        "InvalidNumberLiteral",
        "IntegerOverflow",
        "FloatingPointOverflow",
        "InvalidUnicodeLiteral",
        "InvalidUnicodeCharacter",
    }
    chosen = [s for s in scenarios if s["expect"].get("detail") in details]
    assert len(chosen) >= 8
    for scenario in chosen:
        with pytest.raises(ParseError):
            parse_script(scenario["query"])
