import pytest

from kraft_wire.metadata.topic_names import MAX_NAME_LENGTH, why_invalid


@pytest.mark.parametrize(
    "name", ["a", "A-1", "foo.bar_baz-2", "...", "__consumer_offsets", "x" * MAX_NAME_LENGTH]
)
def test_legal_names(name: str) -> None:
    assert why_invalid(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        (".", "folder"),
        ("..", "folder"),
        ("x" * (MAX_NAME_LENGTH + 1), "250 characters"),
        ("a b", "ASCII"),
        ("a/b", "ASCII"),
        ("a\n", "ASCII"),
        ("größe", "ASCII"),
        ("a\x00", "ASCII"),
        ("٣", "ASCII"),
    ],
)
def test_the_problem_of_an_illegal_name_is_named(name: str, reason: str) -> None:
    problem = why_invalid(name)
    assert problem is not None
    assert reason in problem
