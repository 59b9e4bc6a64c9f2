"""``kraft-wire observe``: follow a quorum without a vote, and let others read from this node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.cli.errors import CommandError, UsageError, run_server
from kraft_wire.cli.observe.joining import check_cluster, check_id, check_known, choose_id, ids_of
from kraft_wire.client.addresses import BOOTSTRAP, parse_addresses
from kraft_wire.client.errors import QuorumError
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.settings import CLUSTER_ID, QuorumSettings
from kraft_wire.client.survey import survey
from kraft_wire.security.errors import BadSetting
from kraft_wire.server import logging
from kraft_wire.server.config.observer_config import ObserverOptions, observer_config
from kraft_wire.server.config.server_config import ServerConfig, load_properties
from kraft_wire.server.entropy import SystemEntropy
from kraft_wire.server.logging import LogFormat, LogLevel
from kraft_wire.storage.errors import NotFormatted
from kraft_wire.storage.folder import check_role, read_meta_properties
from kraft_wire.storage.format import FormatPlan, format_folders
from kraft_wire.wire.address import Address

DEFAULT_LISTENER: Final = "127.0.0.1:9095"
FIRST_ANSWER_MS: Final = 15_000
"""A first start waits so long for the quorum's leader."""
LOOK_MS: Final = 2_000
"""A later start waits so long for each controller, and goes on without an answer."""


def observe(
    *,
    bootstrap: str,
    dir: str,
    node_id: int | None = None,
    listener: str = DEFAULT_LISTENER,
    http: str | None = None,
    config: str | None = None,
    cluster_id: str | None = None,
    log_level: LogLevel | None = None,
    log_format: LogFormat | None = None,
) -> int:
    """Follow a quorum of controllers without a vote, until SIGTERM, SIGINT or SIGHUP.

    The observer keeps the metadata log and its own snapshots in a folder. kcat, Spark and other readers of
    the log can read from it, so that the controllers stay untouched. It works with Kafka's own controllers,
    too. The first start asks the quorum for the cluster's id, and formats the folder.

    For example:

        kraft-wire observe --bootstrap host1:9093,host2:9093,host3:9093 --dir /var/lib/kraft-wire-observer
        kraft-wire observe --bootstrap host1:9093 --dir observer --listener host4:9095 --http host4:9096

    Parameters
    ----------
    bootstrap
        HOST:PORT of controllers, separated by commas. Name all of them.
    dir
        The observer's own folder.
    node_id
        An id that no other node of the cluster has. The first start sets it for good. By default a random
        one above 1000000000.
    listener
        The HOST:PORT for readers of the log. They aren't asked who they are.
    http
        The HOST:PORT for metrics and health over HTTP. By default there is none.
    config
        A properties file with other keys of Kafka or kraft-wire, such as metadata.max.retention.bytes.
    cluster_id
        The cluster's id. The quorum isn't asked for it then: below metadata.version 3.7 it can't be.
    log_level
        The lowest level to log. Default: the environment's KRAFT_WIRE_LOG_LEVEL, otherwise info.
    log_format
        The form of the log. Default: the environment's KRAFT_WIRE_LOG_FORMAT, otherwise text on a terminal
        and json elsewhere.
    """
    logging.configure(logging.log_level(log_level), form=logging.log_format(log_format))
    if node_id is not None:
        check_id(node_id)
    options = ObserverOptions(
        node_id=0 if node_id is None else node_id,
        folder=str(Path(dir).absolute()),
        bootstrap=_addresses(bootstrap),
        listener=listener,
        http=http,
    )
    ready = _joined(options, config, node_id, cluster_id)
    from kraft_wire.server.main import run

    return run_server(lambda: run(ready))


def _joined(
    options: ObserverOptions, file: str | None, wanted_id: int | None, wanted_cluster: str | None
) -> ServerConfig:
    """Return the configuration of an observer whose folder is formatted. Log its warnings."""
    source = "kraft-wire observe" if file is None else file
    properties = {} if file is None else load_properties(file)
    observer_config(options, properties, source)  # bad settings are found before the folder is formatted
    node_id = _join(options, wanted_id, wanted_cluster)
    ready = observer_config(msgspec.structs.replace(options, node_id=node_id), properties, source)
    log = logging.get_logger(__name__)
    for warning in ready.warnings:
        log.warning(warning, file=source)
    return ready


def _addresses(bootstrap: str) -> tuple[Address, ...]:
    try:
        return parse_addresses(bootstrap)
    except BadSetting as error:
        raise UsageError(str(error).replace(BOOTSTRAP, "--bootstrap")) from None


def _join(options: ObserverOptions, wanted_id: int | None, wanted_cluster: str | None) -> int:
    """Return the node id of the observer's folder. Format the folder if it isn't yet."""
    folder = Path(options.folder)
    try:
        known = read_meta_properties(folder)
    except NotFormatted:
        return _format(options, wanted_id, wanted_cluster)
    check_role(folder, is_observer=True)
    check_known(options.folder, known.node_id, wanted_id)
    if wanted_cluster is not None:
        check_cluster(options.folder, known.cluster_id, wanted_cluster, "--cluster-id")
    for named_by, other in _clusters_at(options.bootstrap):
        check_cluster(options.folder, known.cluster_id, other, named_by)
    return known.node_id


def _clusters_at(addresses: Sequence[Address]) -> list[tuple[str, str]]:
    """Return the cluster ids of the controllers that tell theirs now."""
    settings = QuorumSettings(tuple(addresses), request_timeout_ms=LOOK_MS, api_timeout_ms=LOOK_MS)
    answers = survey(settings)
    return [(str(each.address), each.cluster_id) for each in answers if each.cluster_id is not None]


def _format(options: ObserverOptions, wanted_id: int | None, wanted_cluster: str | None) -> int:
    """Ask the quorum who it is, and format the folder. Raises CommandError."""
    settings = QuorumSettings(
        tuple(options.bootstrap), api_timeout_ms=FIRST_ANSWER_MS, cluster_id=wanted_cluster
    )
    try:
        with QuorumClient(settings) as quorum:
            cluster_id = quorum.cluster_id()
            taken = ids_of(quorum.describe_quorum())
    except QuorumError as error:
        text = str(error).replace(f"option {CLUSTER_ID}", "--cluster-id").replace(BOOTSTRAP, "--bootstrap")
        raise CommandError(f"the first start needs the quorum's leader: {text}") from None
    entropy = SystemEntropy()
    node_id = choose_id(wanted_id, taken, entropy.below)
    folder = Path(options.folder)
    format_folders(
        FormatPlan(
            cluster_id=cluster_id,
            node_id=node_id,
            directories=[folder],
            metadata_dir=folder,
            new_directory_id=entropy.uuid,
            is_observer=True,
        )
    )
    logging.get_logger(__name__).info(
        "observer's folder formatted", folder=options.folder, cluster_id=cluster_id, node_id=node_id
    )
    return node_id
