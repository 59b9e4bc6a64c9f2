"""Find the quorum that the options name; each way to fail has its error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kraft_wire.cli.errors import CommandError, UsageError
from kraft_wire.cli.quorum import NoAnswer, NoLeader, Unfit, Unreadable
from kraft_wire.cli.quorum.confirming import NOTHING_CHANGED, interruption_says
from kraft_wire.cli.quorum.patience import no_leader_yet
from kraft_wire.client.addresses import BOOTSTRAP
from kraft_wire.client.errors import QuorumError, QuorumUnreachable, problems_text
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.settings import API_TIMEOUT, KAFKA, REQUEST_TIMEOUT, QuorumSettings, parse_settings
from kraft_wire.client.survey import NodeAnswer, clusters_among, survey
from kraft_wire.security.errors import BadSetting
from kraft_wire.server.config.reader import ConfigError
from kraft_wire.server.config.server_config import load_properties

OPTION: Final = "--bootstrap-controller"
AUTO_JOIN: Final = "controller.quorum.auto.join.enable"
"""The key with which a controller makes itself a voter (KIP-1186)."""
DEFAULT_TIMEOUT_MS: Final = 10_000
START_A_MAJORITY: Final = (
    ". Start the voters that don't answer: a majority must be up and reach each other. If they have other"
    " addresses than the log says, name them in controller.quorum.bootstrap.servers of each. If a majority is"
    " lost for good, begin with `kraft-wire quorum recover collect`"
)
SEE_THEIR_LOGS: Final = (
    ". All of these run: their logs say why they elect nobody. If they can't reach each other at the"
    " addresses in their metadata, name the right ones in controller.quorum.bootstrap.servers of each. If"
    " folders were formatted again, their directory ids are not those of the voters: `kraft-wire quorum"
    " status --from-dir FOLDER` shows it"
)
SEE_STALE: Final = ". `kraft-wire quorum status --stale` shows what each controller knows"


def settings_of(bootstrap: str, command_config: Path | None, timeout_ms: int) -> QuorumSettings:
    """Return the settings of a command's options. Raises UsageError, and Unreadable for the file.

    ``command_config`` is a properties file as Kafka's tools take it; only security settings are used.
    """
    if timeout_ms <= 0:
        raise UsageError(f"--timeout-ms {timeout_ms} is not a number of milliseconds above 0")
    security = {} if command_config is None else _security_of(command_config)
    options = {
        **security,
        BOOTSTRAP: bootstrap,
        API_TIMEOUT: str(timeout_ms),
        REQUEST_TIMEOUT: str(timeout_ms),
    }
    try:
        return parse_settings(options)
    except BadSetting as error:
        raise UsageError(_in_kafka_s_words(error)) from None


def _security_of(command_config: Path) -> dict[str, str]:
    try:
        properties = load_properties(str(command_config))
    except ConfigError as error:
        raise Unreadable(str(error)) from None
    return {f"{KAFKA}{key}": value for key, value in properties.items()}


def _in_kafka_s_words(error: BadSetting) -> str:
    """Name the keys of Kafka's tools, and our own option, instead of the options of the data source."""
    return str(error).replace(BOOTSTRAP, OPTION).replace(KAFKA, "--command-config: ", 1).replace(KAFKA, "")


@contextmanager
def client_errors() -> Iterator[None]:
    """Turn the client's errors into those of a command: UsageError for bad settings, CommandError for others.
    A quorum without a leader is for the caller."""
    try:
        yield
    except QuorumUnreachable:
        raise
    except BadSetting as error:
        raise UsageError(_in_kafka_s_words(error)) from None
    except QuorumError as error:
        raise CommandError(str(error)) from None


@contextmanager
def led_quorum(settings: QuorumSettings) -> Iterator[QuorumClient]:
    """Give a client of the quorum. A request that no leader answers raises NoAnswer or NoLeader.

    An interruption raises Interrupted, which says that nothing was changed: a caller that sends a change has
    its own text (``interruption_says``).
    """
    waiting = no_leader_yet(settings)
    with (
        interruption_says(NOTHING_CHANGED),
        client_errors(),
        QuorumClient(settings, waiting=waiting) as quorum,
    ):
        try:
            yield quorum
        except QuorumUnreachable as error:
            raise without_leader(survey(settings), error) from None


def check_given(settings: QuorumSettings) -> None:
    """Raise Unfit if the given controllers are of several clusters."""
    if len(settings.bootstrap) > 1:
        check_one_cluster(survey(settings))


def check_one_cluster(answers: Iterable[NodeAnswer]) -> None:
    """Raise Unfit for controllers of several clusters: it would depend on chance which one is asked."""
    clusters = clusters_among(answers)
    if len(clusters) > 1:
        named = "; ".join(f"{id} ({', '.join(map(str, at))})" for id, at in sorted(clusters.items()))
        raise Unfit(f"{OPTION} names controllers of several clusters: {named}; give those of one")


def advice_without_leader(answers: Iterable[NodeAnswer]) -> str:
    """Return what to do when none of these controllers leads."""
    return START_A_MAJORITY if any(answer.problem for answer in answers) else SEE_THEIR_LOGS


def without_leader(
    answers: list[NodeAnswer], error: QuorumUnreachable, advice: str = SEE_STALE
) -> NoAnswer | NoLeader:
    """Return the error of a quorum whose controllers gave these answers when no leader was found."""
    if not any(answer.epoch >= 0 for answer in answers):
        return no_answer(answers)
    asked = problems_text(error.problems)
    return NoLeader(f"no leader in {error.waited_ms} ms: {asked}{advice}")


def no_answer(answers: list[NodeAnswer]) -> NoAnswer:
    """Return the error of a quorum none of whose controllers answers."""
    asked = problems_text({answer.address: answer.problem for answer in answers})
    return NoAnswer(f"no controller answers: {asked}. Check {OPTION}, and that controllers are running")
