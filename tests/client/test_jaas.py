"""sasl.jaas.config holds a username and a password."""

from __future__ import annotations

import pytest

from kraft_wire.client.jaas import parse_login
from kraft_wire.security.errors import BadSetting

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("line", "username", "password"),
    [
        (f'{PLAIN} required username="alice" password="secret";', "alice", "secret"),
        (f"  {PLAIN}\n REQUIRED\n  password='p;=\"w'\n  username=bob ;  ", "bob", 'p;="w'),
        (rf'{PLAIN} required username="a\"b\\c" password="x y" user_admin="z";', 'a"b\\c', "x y"),
        (f'{PLAIN} required username="" password="";', "", ""),
    ],
)
def test_username_and_password_are_found(line: str, username: str, password: str) -> None:
    name, secret = parse_login(line, "PLAIN")
    assert (name, secret.reveal()) == (username, password)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (f'{PLAIN} required username="a" password="hunter-2"', "must be org.apache"),
        (f'{PLAIN} username="a" password="hunter-2";', "must be org.apache"),
        (f'{PLAIN} required username="a" password="hunter-2;', "must be org.apache"),
        (f'{PLAIN} required username="a" password "hunter-2";', "must be org.apache"),
        (f'{PLAIN} required password="hunter-2";', "has no username"),
        (f'{PLAIN} required user="hunter-2";', "has no username and no password"),
        (
            f'{SCRAM} required username="a" password="hunter-2";',
            f"the login module of PLAIN is {PLAIN}, not {SCRAM}",
        ),
        ("", "must be org.apache"),
    ],
)
def test_an_invalid_line_is_an_error_that_shows_no_secret(line: str, problem: str) -> None:
    with pytest.raises(BadSetting) as error:
        parse_login(line, "PLAIN")
    assert str(error.value).startswith(f"kafka.sasl.jaas.config: {problem}")
    assert "hunter-2" not in repr(error.value)


def test_scram_has_a_module_of_its_own() -> None:
    line = f'{SCRAM} required username="a" password="b";'
    assert parse_login(line, "SCRAM-SHA-512")[0] == "a"
