"""Draw a script from a seed: mostly steps that make sense one after the other, and some that don't.

What is drawn doesn't depend on answers. A step is valid only mostly: whether it is, the two controllers say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from compat.judges.behaviour.quorum_steps import (
    AddVoter,
    BeginEpoch,
    DescribeQuorum,
    EndEpoch,
    Fault,
    Fetch,
    FetchSnapshot,
    RegisterController,
    RemoveVoter,
    UpdateVoter,
    Vote,
)
from compat.judges.behaviour.step import Place, Replicas
from compat.judges.behaviour.steps import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartition,
    AlterQuotas,
    AlterScram,
    AnyStep,
    ApiVersions,
    Assign,
    Beat,
    Change,
    CreatePartitions,
    CreateToken,
    CreateTopics,
    DeleteTopics,
    DescribeCluster,
    DescribeConfigs,
    DescribeScram,
    DescribeTokens,
    ElectLeaders,
    ExpireToken,
    ListReassignments,
    Move,
    NewTopic,
    Reassign,
    Register,
    RenewToken,
    ReplaceConfigs,
    Script,
    Unregister,
    UnregisterController,
    UpdateFeatures,
)

BROKERS: Final = range(5)
STRANGE_BROKER: Final = 9
TOPICS: Final = tuple(f"t{number}" for number in range(6))
USERS: Final = ("ann", "bob", "eve")
DIRS: Final = (0, 1, 2)
TOPIC, BROKER, METRICS, GROUP, LOGGER = 2, 4, 16, 32, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
UPGRADE, SAFE, UNSAFE = 1, 2, 3
SHA_256, SHA_512 = 1, 2

TOPIC_VALUES: Final = {
    "retention.ms": ("1000", "-1", "soon", ""),
    "cleanup.policy": ("compact", "delete", "compact,delete", "burn"),
    "min.insync.replicas": ("1", "2", "3", "0"),
    "unclean.leader.election.enable": ("true", "false", "maybe"),
    "segment.bytes": ("1048576", "1"),
    "compression.type": ("zstd", "gzip", "paper"),
    "no.such.key": ("1",),
    "leader.replication.throttled.replicas": ("*", "0:1,1:2", "x"),
}
# Wrong values of brokers aren't among them: Java's controller accepts those that topics fall back on.
BROKER_VALUES: Final = {
    "log.retention.ms": ("5000",),
    "min.insync.replicas": ("1", "2"),
    "unclean.leader.election.enable": ("true", "false"),
    "background.threads": ("3", "0"),
    "log.cleaner.threads": ("2",),
    "leader.replication.throttled.rate": ("1000",),
    "message.max.bytes": ("100000",),
    "node.id": ("7",),
    "my.own.key": ("anything",),
}
GROUP_VALUES: Final = {
    "consumer.session.timeout.ms": ("45000", "50000", "1"),
    "consumer.heartbeat.interval.ms": ("5000", "1"),
    "share.record.lock.duration.ms": ("15000", "x"),
    "streams.rack.aware.assignment.tags": ("rack", "zone,rack", "rack,rack"),
}
METRICS_VALUES: Final = {
    "interval.ms": ("5000", "1", "x"),
    "metrics": ("org.apache.kafka.", "*"),
    "match": ("client_id=a.*", "nothing"),
}
QUOTA_VALUES: Final = {
    "producer_byte_rate": (1000.0, 0.0, 0.5, -1.0),
    "consumer_byte_rate": (2000.0, 1e18),
    "request_percentage": (150.0, 0.5),
    "controller_mutation_rate": (1e6, 0.0),
    "connection_creation_rate": (10.0, 1.5),
    "no_such_rate": (1.0,),
}
FEATURES: Final = {
    "metadata.version": (33, 32, 30, 25, 21, 17, 7, 34, 99, 0),
    "transaction.version": (0, 1, 2, 3),
    "group.version": (0, 1),
    "share.version": (0, 1, 2),
    "streams.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "kraft.version": (0, 1),
    "no.such.feature": (1,),
}

Properties = Mapping[str, str | None]
"""Keys of a properties file. None: a key isn't there."""
FAULTS: Final[tuple[Fault, ...]] = ("cluster", "topic", "partition", "old epoch", "new epoch", "none")


def draw(seed: int, steps: int) -> Script:
    """Return a script of so many steps. It begins with brokers and a topic.

    It ends with a topic whose replicas the controller places: from there on, the two clusters differ.
    """
    return _Draft(Random(seed)).steps(steps)


def properties_of(seed: int) -> Properties:
    """Return what the controllers of a script have in their files: one in four lacks something."""
    match seed % 8:
        case 3:
            return {"delete.topic.enable": "false"}
        case 7:
            return {"delegation.token.secret.key": None}
        case _:
            return {}


class _Draft:
    """The script so far, and what is probably there."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._incarnations = dict.fromkeys(BROKERS, 1)
        self._partitions: dict[str, int] = {}
        self._tokens = 0
        self._kinds: list[tuple[Callable[[], AnyStep], int]] = [
            (self._beat, 14),
            (self._register, 6),
            (self._unregister, 2),
            (self._unregister_controller, 1),
            (self._create_topics, 9),
            (self._delete_topics, 4),
            (self._create_partitions, 4),
            (self._alter_partition, 16),
            (self._elect, 6),
            (self._reassign, 8),
            (self._list_reassignments, 3),
            (self._assign, 4),
            (self._alter_configs, 9),
            (self._replace_configs, 3),
            (self._describe_configs, 3),
            (self._alter_quotas, 4),
            (self._alter_scram, 3),
            (self._create_token, 2),
            (self._renew_token, 2),
            (self._expire_token, 2),
            (self._update_features, 4),
            (self._allocate, 2),
            (self._describe_cluster, 1),
            (self._describe_unanswered, 1),
            (self._api_versions, 1),
            (self._register_controller, 2),
            (self._ask_quorum, 6),
        ]

    def steps(self, count: int) -> Script:
        first: list[AnyStep] = []
        for broker in BROKERS[:4]:
            first += [Register(broker=broker, dirs=(0, 1)), Beat(broker=broker)]
        first.append(CreateTopics(topics=(self._topic("t0"),)))
        kinds, weights = zip(*self._kinds, strict=True)
        drawn = [kind() for kind in self._chance.choices(kinds, weights, k=max(0, count - len(first) - 1))]
        return (*[*first, *drawn][: count - 1], self._placed_by_chance())

    # Chance.

    def _often(self, part: float = 0.85) -> bool:
        return self._chance.random() < part

    def _rarely(self, part: float = 0.06) -> bool:
        return self._chance.random() < part

    def _broker(self) -> int:
        return STRANGE_BROKER if self._rarely(0.03) else self._chance.choice(BROKERS)

    def _name(self) -> str:
        there = list(self._partitions)
        return self._chance.choice(there if there and self._often(0.9) else TOPICS)

    def _place(self) -> Place:
        topic = self._name()
        count = self._partitions.get(topic, 1)
        return topic, self._chance.randrange(count + (1 if self._rarely() else 0))

    def _places(self) -> tuple[Place, ...]:
        return tuple(self._place() for _ in range(self._chance.randint(1, 3)))

    def _replicas(self, count: int | None = None) -> Replicas:
        pool = [*BROKERS, STRANGE_BROKER] if self._rarely(0.03) else list(BROKERS[:4])
        chosen = self._chance.sample(pool, self._chance.randint(1, 4) if count is None else count)
        if self._rarely(0.03):
            chosen.append(chosen[0])
        return () if self._rarely(0.02) else tuple(chosen)

    def _version(self, oldest: int, newest: int) -> int | None:
        """Return the version of a request, mostly the newest."""
        return self._chance.randint(oldest, newest) if self._rarely(0.3) else None

    # Brokers.

    def _register(self) -> AnyStep:
        broker, version = self._chance.choice(BROKERS), self._version(0, 4)
        if self._often(0.4):
            self._incarnations[broker] = self._chance.randint(1, 3)
        return Register(
            broker=broker,
            incarnation=self._incarnations[broker],
            dirs=tuple(self._chance.sample(DIRS, self._chance.randint(0 if self._rarely() else 1, 3))),
            dirs_of=self._chance.choice(BROKERS) if self._rarely() else None,
            rack=self._chance.choice((None, "r1", "r2")),
            previous=self._chance.choice(("none", "last", "wrong")),
            without=self._chance.choice(tuple(FEATURES)) if self._rarely() else "",
            most=self._chance.choice((33, 25, 20)) if self._rarely() else None,
            wrong_cluster=self._rarely(0.03),
            zookeeper=version != 0 and self._rarely(0.03),
            version=version,
        )

    def _beat(self) -> AnyStep:
        version = self._version(0, 2)
        return Beat(
            broker=self._broker(),
            fence=self._rarely(0.12),
            stop=self._rarely(0.08),
            is_behind=self._rarely(),
            is_stale=self._rarely(),
            offline=tuple(self._chance.sample(DIRS, 1)) if version != 0 and self._rarely(0.1) else (),
            cordoned=tuple(self._chance.sample(DIRS, 1))
            if version in (None, 2) and self._rarely(0.05)
            else None,
            version=version,
        )

    def _unregister(self) -> AnyStep:
        return Unregister(broker=self._broker())

    def _unregister_controller(self) -> AnyStep:
        return UnregisterController(controller=self._chance.choice((100, 101, 0)))

    def _allocate(self) -> AnyStep:
        return AllocateProducerIds(broker=self._broker(), is_stale=self._rarely(0.2))

    # Topics.

    def _topic(self, name: str) -> NewTopic:
        count, factor = self._chance.randint(1, 4), self._chance.randint(1, 3)
        self._partitions.setdefault(name, count)
        some = self._chance.sample(list(TOPIC_VALUES), self._chance.choice((0, 0, 1, 2)))
        return NewTopic(
            name,
            assignments=tuple(self._replicas(factor) for _ in range(count)),
            configs=tuple((key, self._value(TOPIC_VALUES[key])) for key in some),
            partitions=3 if self._rarely(0.03) else -1,
            factor=2 if self._rarely(0.03) else -1,
            first_index=1 if self._rarely(0.03) else 0,
        )

    def _value(self, values: tuple[str, ...]) -> str:
        """Return the first value, or another one: the last ones are mostly wrong."""
        return values[0] if self._often(0.5) else self._chance.choice(values)

    def _create_topics(self) -> AnyStep:
        name = self._chance.choice(TOPICS)
        topics = [self._topic(name)]
        if self._rarely(0.2):
            topics.append(
                self._topic(self._chance.choice((*TOPICS, "bad name", "__cluster_metadata", "t.0", "t_0")))
            )
        is_only_validated = self._rarely(0.15)
        if self._rarely(0.1):
            topics = [NewTopic(name, partitions=self._chance.choice((0, -2, 10_001)), factor=1)]
        elif is_only_validated:
            topics = [NewTopic(name, partitions=3, factor=self._chance.choice((1, 2, 3, 4, 5, 0)))]
        return CreateTopics(
            topics=tuple(topics),
            validate_only=is_only_validated,
            version=self._version(2, 7),
            timeout_ms=0 if self._rarely(0.03) else 30_000,
            user=self._chance.choice(USERS) if self._rarely(0.2) else None,
        )

    def _placed_by_chance(self) -> AnyStep:
        count, factor = self._chance.randint(1, 8), self._chance.randint(1, 4)
        return CreateTopics(topics=(NewTopic("placed", partitions=count, factor=factor),))

    def _delete_topics(self) -> AnyStep:
        name = self._name()
        self._partitions.pop(name, None)
        version = self._chance.randint(1, 5) if self._rarely(0.4) else None
        by_id = (name,) if version is None and self._often(0.4) else ()
        names = () if by_id and self._often() else (name,)
        return DeleteTopics(
            names=names, by_id=by_id, version=version, timeout_ms=0 if self._rarely(0.03) else 30_000
        )

    def _create_partitions(self) -> AnyStep:
        topic, more = self._name(), self._chance.choice((1, 1, 2, 0, -1))
        count = self._partitions.get(topic, 1) + more
        if more > 0:
            self._partitions[topic] = count
        given = more + (1 if self._rarely() else 0)
        return CreatePartitions(
            topic=topic,
            count=count,
            assignments=tuple(self._replicas(self._chance.randint(1, 3)) for _ in range(max(given, 0))),
            validate_only=self._rarely(0.15),
            version=self._version(0, 3),
            timeout_ms=0 if self._rarely(0.03) else 30_000,
        )

    # Partitions.

    def _alter_partition(self) -> AnyStep:
        topic, partition = self._place()
        return AlterPartition(
            topic=topic,
            partition=partition,
            isr=self._replicas(),
            leader_epoch=self._chance.choice((-1, 1)) if self._rarely() else 0,
            partition_epoch=self._chance.choice((-1, 1)) if self._rarely() else 0,
            recovered=not self._rarely(0.04),
            stranger=self._broker() if self._rarely() else None,
            is_stale=self._rarely(0.03),
            is_unsure=self._rarely(0.15),
            wrong_id=self._rarely(0.03),
            version=2 if self._rarely(0.3) else None,
        )

    def _elect(self) -> AnyStep:
        unclean = self._often(0.4)
        return ElectLeaders(
            partitions=None if self._rarely(0.3) else self._places(),
            unclean=unclean,
            version=None if self._often(0.5) else (1 if unclean else self._chance.choice((0, 1))),
            timeout_ms=0 if self._rarely(0.03) else 30_000,
        )

    def _reassign(self) -> AnyStep:
        moves = [
            Move(*self._place(), replicas=None if self._rarely(0.25) else self._replicas())
            for _ in range(self._chance.choice((1, 1, 2)))
        ]
        once = {(move.topic, move.partition): move for move in moves}
        version = self._version(0, 1)
        return Reassign(
            moves=tuple(once.values()),
            keeps_factor=version != 0 and self._rarely(0.1),
            version=version,
            timeout_ms=0 if self._rarely(0.03) else 30_000,
        )

    def _list_reassignments(self) -> AnyStep:
        return ListReassignments(partitions=None if self._often(0.6) else self._places())

    def _assign(self) -> AnyStep:
        topic, partition = self._place()
        return Assign(
            broker=self._broker(),
            topic=topic,
            partition=partition,
            dir=self._chance.choice(DIRS),
            is_stale=self._rarely(),
        )

    # Configurations and clients.

    def _resource(self) -> tuple[int, str, dict[str, tuple[str, ...]]]:
        kind = self._chance.choices((TOPIC, BROKER, GROUP, METRICS), (8, 4, 2, 2))[0]
        if kind == TOPIC:
            return kind, self._name(), TOPIC_VALUES
        if kind == BROKER:
            return kind, self._chance.choice(("", "", "0", "1", "100", "9", "x")), BROKER_VALUES
        if kind == GROUP:
            return kind, self._chance.choice(("g1", "g2", "")), GROUP_VALUES
        return kind, self._chance.choice(("m1", "m2", "")), METRICS_VALUES

    def _alter_configs(self) -> AnyStep:
        kind, name, values = self._resource()
        keys = self._chance.sample(list(values), self._chance.choice((1, 1, 2)))
        changes = []
        for key in keys:
            operation = self._chance.choices((SET, DELETE, APPEND, SUBTRACT), (6, 2, 1, 1))[0]
            changes.append(Change(key, operation, None if operation == DELETE else self._value(values[key])))
        return AlterConfigs(
            kind=kind,
            name=name,
            changes=tuple(changes),
            validate_only=self._rarely(0.1),
            version=self._version(0, 1),
            user=self._chance.choice(USERS) if self._rarely(0.3) else None,
        )

    def _replace_configs(self) -> AnyStep:
        kind, name, values = self._resource()
        keys = self._chance.sample(list(values), self._chance.choice((0, 1, 2)))
        return ReplaceConfigs(
            kind=kind,
            name=name,
            values=tuple((key, self._value(values[key])) for key in keys),
            validate_only=self._rarely(0.1),
            version=self._version(0, 2),
        )

    def _describe_configs(self) -> AnyStep:
        kind, name, values = self._resource()
        version = self._version(1, 4)
        return DescribeConfigs(
            kind=kind,
            name=name,
            keys=tuple(self._chance.sample(list(values), 2)) if self._rarely(0.3) else None,
            synonyms=self._often(0.5),
            documentation=version in (None, 3, 4) and self._rarely(0.1),
            version=version,
        )

    def _alter_quotas(self) -> AnyStep:
        user, client = self._chance.choice((*USERS, None)), self._chance.choice(("app", None))
        entity: tuple[tuple[str, str | None], ...] = self._chance.choice(
            (
                (("user", user),),
                (("client-id", client),),
                (("user", user), ("client-id", client)),
                (("ip", "10.0.0.1"),),
                (("ip", None),),
                (("ip", None), ("user", user)),
                (("planet", "mars"),),
                (),
            )
        )
        keys = self._chance.sample(list(QUOTA_VALUES), self._chance.choice((1, 1, 2)))
        if self._often(0.6):
            is_ip = entity[:1] and entity[0][0] == "ip"
            keys = ["connection_creation_rate"] if is_ip else [self._chance.choice(list(QUOTA_VALUES)[:4])]
        values = tuple(
            (key, None if self._rarely(0.25) else self._chance.choice(QUOTA_VALUES[key])) for key in keys
        )
        return AlterQuotas(
            entity=entity, values=values, validate_only=self._rarely(0.1), version=self._version(0, 1)
        )

    def _alter_scram(self) -> AnyStep:
        def user() -> str:
            return "" if self._rarely(0.05) else self._chance.choice(USERS)

        def mechanism() -> int:
            return self._chance.choice((0, 3)) if self._rarely() else self._chance.choice((SHA_256, SHA_512))

        def iterations() -> int:
            return self._chance.choice((1, 20_000)) if self._rarely(0.1) else 4096

        return AlterScram(
            upsertions=tuple(
                (user(), mechanism(), iterations()) for _ in range(self._chance.choice((0, 1, 2)))
            ),
            deletions=tuple((user(), mechanism()) for _ in range(self._chance.choice((0, 0, 1)))),
        )

    def _create_token(self) -> AnyStep:
        self._tokens += 1
        version = self._version(1, 3)
        return CreateToken(
            user=self._chance.choice(USERS) if self._often() else None,
            owner=self._chance.choice(USERS) if version in (None, 3) and self._rarely(0.2) else None,
            version=version,
            renewers=(self._chance.choice(USERS),) if self._rarely(0.3) else (),
            lifetime_ms=self._chance.choice((-1, 3_600_000, 0)) if self._rarely(0.4) else -1,
        )

    def _token(self) -> int:
        return self._chance.randrange(self._tokens + 1)

    def _renew_token(self) -> AnyStep:
        user = self._chance.choice(USERS) if self._often() else None
        period_ms = self._chance.choice((-1, 7_200_000, 0))
        return RenewToken(token=self._token(), period_ms=period_ms, user=user, version=self._version(1, 2))

    def _expire_token(self) -> AnyStep:
        user = self._chance.choice(USERS) if self._often() else None
        period_ms = self._chance.choice((-1, 600_000, 0))
        return ExpireToken(token=self._token(), period_ms=period_ms, user=user, version=self._version(1, 2))

    # The cluster.

    def _update_features(self) -> AnyStep:
        names = self._chance.sample(list(FEATURES), self._chance.choice((1, 1, 2)))
        kinds = (UPGRADE, SAFE, UNSAFE, 0)
        return UpdateFeatures(
            updates=tuple(
                (
                    name,
                    self._chance.choice(FEATURES[name]),
                    self._chance.choices(kinds, (6, 3, 2, 1))[0],
                )
                for name in names
            ),
            validate_only=self._rarely(0.2),
            version=self._version(0, 2),
        )

    def _describe_cluster(self) -> AnyStep:
        version = self._chance.choice((0, 1, 2))
        return DescribeCluster(of_brokers=self._rarely(0.2), version=version)

    def _api_versions(self) -> AnyStep:
        return ApiVersions(name="" if self._rarely(0.2) else "judge", version=self._chance.randint(0, 5))

    def _describe_unanswered(self) -> AnyStep:
        return DescribeScram() if self._often(0.5) else DescribeTokens(version=self._version(1, 3))

    # The quorum.

    def _register_controller(self) -> AnyStep:
        return RegisterController(
            controller=self._chance.choice((101, 102)),
            incarnation=self._chance.randint(1, 2),
            most=25 if self._rarely() else None,
        )

    def _ask_quorum(self) -> AnyStep:
        fault: Fault = self._chance.choice(FAULTS)
        match self._chance.randrange(9):
            case 0:
                return self._vote(fault)
            case 1:
                return BeginEpoch(fault=_not_above(fault), version=self._version(0, 1))
            case 2:
                return EndEpoch(fault=_not_above(fault), version=self._version(0, 1))
            case 3:
                return Fetch(fault=fault, version=self._version(13, 18))
            case 4:
                return FetchSnapshot(fault=fault, version=self._version(0, 1))
            case 5:
                return AddVoter(fault=fault, has_listener=self._often(), version=self._version(0, 1))
            case 6:
                return RemoveVoter(fault=fault, is_there=self._often(0.5))
            case 7:
                return UpdateVoter(fault=fault, has_listener=self._often())
            case _:
                return DescribeQuorum(fault=fault, version=self._version(0, 2))

    def _vote(self, fault: Fault) -> AnyStep:
        version = self._version(0, 2)
        return Vote(
            fault=_not_above(fault),
            is_pre_vote=version in (None, 2) and self._often(0.5),
            last_epoch=self._chance.choice((0, 1, 9, -1)),
            last_offset=self._chance.choice((0, 10_000, -1)),
            version=version,
        )


def _not_above(fault: Fault) -> Fault:
    """Java's leader steps down for any higher epoch; ours only for a voter's."""
    return "old epoch" if fault == "new epoch" else fault
