"""The parser of PromQL takes what dashboards have, and nothing broken."""

from __future__ import annotations

import pytest

from tests.support.promql import Selector, SyntaxProblem, parse


def test_an_expression_names_metrics_and_labels() -> None:
    found = parse(
        'sum by (le, api) (rate(a_bucket{le="0.05",api=~"x|y"}[5m])) / on (job) b > 1e3 or absent(c)'
    )
    assert found.selectors == [
        Selector("a_bucket", {"le": ("=", "0.05"), "api": ("=~", "x|y")}),
        Selector("b", {}),
        Selector("c", {}),
    ]
    assert found.labels == {"le", "api", "job"}


@pytest.mark.parametrize(
    "text",
    [
        "a - ignoring (le) b > 5",
        "predict_linear(a[6h], 86400) < 0",
        'a{x!="$job"} > 1',
        "rate(a[$__rate_interval])",
        "sum(a) without (b)",
        "a and on (b) (c unless d offset 5m)",
        "-a * 2",
        "max by () (a)",
    ],
)
def test_it_is_taken(text: str) -> None:
    assert parse(text).selectors


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sum(",
        "a b",
        "a ==",
        "a ~ b",
        "a{x=1}",
        'a{x="y"',
        "sum by job (a)",
        "nosuch(a)",
        "rate(a)",
        "rate(a[5m]",
        "rate(a[])",
        "sum(a[5m])",
        "a[5m]",
        "a[5m] > 1",
        "a and on b c",
    ],
)
def test_it_is_rejected(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        parse(text)
