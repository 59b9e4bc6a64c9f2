"""The tables of configuration keys are generated from the extracted facts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codegen.config_facts import __main__ as config_facts


def test_the_committed_module_is_what_the_facts_give() -> None:
    assert config_facts.main(["generate", "--check"]) == 0


def test_a_difference_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "config_tables.py"
    module.write_text("edited by hand")
    monkeypatch.setattr(config_facts, "MODULE", module)
    monkeypatch.setattr(config_facts, "ROOT", tmp_path)
    monkeypatch.setattr(config_facts, "FACTS", _facts(tmp_path))
    assert config_facts.main(["generate", "--check"]) == 1
    assert "config_tables.py" in capsys.readouterr().out
    assert config_facts.main(["generate"]) == 0
    assert config_facts.main(["generate", "--check"]) == 0


def test_every_fact_reaches_the_module(tmp_path: Path) -> None:
    text = config_facts.generate(json.loads(_facts(tmp_path).read_text()), "4.4.0-configs.json")
    assert 'ConfigKey("size", "INT", "5", minimum=1, maximum=9)' in text
    assert 'ConfigKey("how", "LIST", "a", allowed=("a", "b"), distinct=True)' in text
    assert 'ConfigKey("must", "STRING", None, required=True)' in text
    assert '"size": (Synonym("log.size", 60),),' in text
    assert '"g": "group.g",' in text
    assert "BROKER_DYNAMIC_PER_LISTENER: Final = frozenset(" in text and '"ssl.store",' in text
    assert max(map(len, text.splitlines())) <= config_facts.LINE_LENGTH
    compile(text, "config_tables.py", "exec")


def _facts(folder: Path) -> Path:
    facts = {
        "kafka": "4.4.0",
        "topic": {
            "size": {"type": "INT", "default": "5", "min": 1, "max": 9},
            "how": {"type": "LIST", "default": "a", "in": ["a", "b"], "distinct": True},
        },
        "broker": {"must": {"type": "STRING", "required": True}, "k" * 90: {"type": "INT", "default": None}},
        "brokerDynamicOnly": {},
        "group": {"g": {"type": "INT", "default": "1"}},
        "clientMetrics": {},
        "topicSynonyms": {"size": [{"name": "log.size", "factor": 60}]},
        "groupSynonyms": {"g": "group.g"},
        "brokerDynamic": ["log.size"],
        "brokerDynamicPerBroker": [],
        "brokerDynamicPerListener": ["ssl.store"],
    }
    path = folder / "4.4.0-configs.json"
    path.write_text(json.dumps(facts))
    return path
