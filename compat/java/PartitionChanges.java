import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecordJsonConverter;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.PartitionRecordJsonConverter;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Asks Kafka's PartitionChangeBuilder how partitions change. Each line on standard input is a situation, each line on
 * standard output an answer.
 *
 * <p>A situation is a JSON object with "partition" (a PartitionRecord, version 2), "goal" and "rules". The answer is "null",
 * or the record's version, a space, and the PartitionChangeRecord in JSON.
 */
public final class PartitionChanges {
    private static final short RECORD_VERSION = 2;

    private PartitionChanges() {
    }

    public static void main(String[] arguments) throws IOException {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.append(change(mapper.readTree(line))).append('\n');
        }
        System.out.print(answers);
    }

    private static String change(JsonNode situation) {
        PartitionRecord before = PartitionRecordJsonConverter.read(situation.get("partition"), RECORD_VERSION);
        JsonNode rules = situation.get("rules");
        Set<Integer> up = new HashSet<>(ints(rules.get("up")));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            new PartitionRegistration(before),
            before.topicId(),
            before.partitionId(),
            up::contains,
            MetadataVersion.fromFeatureLevel((short) rules.get("metadataVersion").asInt()),
            rules.get("minIsr").asInt(),
            rules.get("elrEnabled").asBoolean());
        builder.setDefaultDirProvider(brokerId -> DirectoryId.UNASSIGNED);
        aim(builder, situation.get("goal"));
        Optional<ApiMessageAndVersion> record = builder.build();
        if (record.isEmpty()) {
            return "null";
        }
        PartitionChangeRecord message = (PartitionChangeRecord) record.get().message();
        return record.get().version() + " " + PartitionChangeRecordJsonConverter.write(message, RECORD_VERSION);
    }

    private static void aim(PartitionChangeBuilder builder, JsonNode goal) {
        builder.setElection(PartitionChangeBuilder.Election.valueOf(goal.get("election").asText()));
        builder.setUncleanShutdownReplicas(ints(goal.get("uncleanShutdown")));
        if (goal.hasNonNull("isr")) {
            builder.setTargetIsr(ints(goal.get("isr")));
        }
        if (goal.hasNonNull("replicas")) {
            builder.setTargetReplicas(ints(goal.get("replicas")));
        }
        if (goal.hasNonNull("removing")) {
            builder.setTargetRemoving(ints(goal.get("removing")));
        }
        if (goal.hasNonNull("adding")) {
            builder.setTargetAdding(ints(goal.get("adding")));
        }
        if (goal.hasNonNull("recoveryState")) {
            builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) goal.get("recoveryState").asInt()));
        }
        goal.get("directories").properties().forEach(entry ->
            builder.setDirectory(Integer.parseInt(entry.getKey()), Uuid.fromString(entry.getValue().asText())));
    }

    private static List<Integer> ints(JsonNode array) {
        List<Integer> values = new ArrayList<>();
        array.forEach(value -> values.add(value.asInt()));
        return values;
    }
}
