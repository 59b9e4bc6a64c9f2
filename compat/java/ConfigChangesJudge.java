package org.apache.kafka.controller;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.AbstractMap.SimpleEntry;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;

import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.BrokerIdNotRegisteredException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Changes the configuration of one resource as Kafka's controller does, in a cluster with topic t, broker 0 and node 3000.
 *
 * Input: one JSON object in each line: level, elr, forwarded, type, name, existing (values by key), changes (KEY, OPERATION,
 * VALUE). Output: the code of the answer, and each record in its order as NAME KEY=VALUE, or the name of its class.
 */
public final class ConfigChangesJudge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Set<String> NODES = Set.of("0", "3000");

    private ConfigChangesJudge() {
    }

    public static void main(String[] arguments) throws Exception {
        KafkaConfig config = new KafkaConfig(Map.of(
            "process.roles", "controller",
            "node.id", "3000",
            "controller.listener.names", "CONTROLLER",
            "listeners", "CONTROLLER://localhost:9093",
            "controller.quorum.voters", "3000@localhost:9093"));
        ConfigurationValidator validator = new ControllerConfigurationValidator(config);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine())
            out.println("verdict " + verdict(JSON.readTree(line), validator));
        out.flush();
    }

    private static String verdict(JsonNode asked, ConfigurationValidator validator) throws Exception {
        ConfigResource resource =
            new ConfigResource(ConfigResource.Type.forId((byte) asked.get("type").asInt()), asked.get("name").asText());
        ConfigurationControlManager manager = manager(asked, validator);
        for (Entry<String, JsonNode> value : asked.get("existing").properties())
            manager.replay(record(resource, value.getKey(), value.getValue().asText()));
        Map<String, Entry<OpType, String>> changes = new LinkedHashMap<>();
        for (JsonNode change : asked.get("changes"))
            changes.put(change.get(0).asText(), new SimpleEntry<>(
                OpType.forId((byte) change.get(1).asInt()), change.get(2).isNull() ? null : change.get(2).asText()));
        ControllerResult<Map<ConfigResource, ApiError>> result =
            manager.incrementalAlterConfigs(new HashMap<>(Map.of(resource, changes)), false, asked.get("forwarded").asBoolean());
        ObjectNode verdict = JSON.createObjectNode().put("code", result.response().get(resource).error().code());
        for (ApiMessageAndVersion each : result.records())
            verdict.withArray("/records").add(text(each));
        return verdict.toString();
    }

    private static ConfigurationControlManager manager(JsonNode asked, ConfigurationValidator validator) {
        FeatureControlManager features = new FeatureControlManager.Builder()
            .setQuorumFeatures(new QuorumFeatures(3000, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(3000)))
            .build();
        features.replay(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel((short) asked.get("level").asInt()));
        if (asked.get("elr").asBoolean())
            features.replay(
                new FeatureLevelRecord().setName("eligible.leader.replicas.version").setFeatureLevel((short) 1));
        return new ConfigurationControlManager.Builder()
            .setKafkaConfigSchema(KafkaRaftServer.configSchema())
            .setFeatureControl(features)
            .setNodeId(3000)
            .setValidator(validator)
            .setExistenceChecker(ConfigChangesJudge::checkExistence)
            .build();
    }

    /** As the controller's own, for the nodes and the topic of this cluster. */
    private static void checkExistence(ConfigResource resource) {
        String name = resource.name();
        if (resource.type() == ConfigResource.Type.BROKER && !name.isEmpty()
            && !NODES.contains(Integer.toString(Integer.parseInt(name))))
            throw new BrokerIdNotRegisteredException(name);
        if (resource.type() == ConfigResource.Type.TOPIC && !name.equals("t"))
            throw new UnknownTopicOrPartitionException(name);
    }

    private static ConfigRecord record(ConfigResource resource, String key, String value) {
        return new ConfigRecord()
            .setResourceType(resource.type().id()).setResourceName(resource.name()).setName(key).setValue(value);
    }

    private static String text(ApiMessageAndVersion each) {
        if (each.message() instanceof ConfigRecord record)
            return record.resourceName() + " " + record.name() + "=" + record.value();
        return each.message().getClass().getSimpleName();
    }
}
