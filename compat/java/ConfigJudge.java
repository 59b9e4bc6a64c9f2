import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;

import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Says of values of topics whether Kafka accepts them, as the only value that is set on a topic.
 *
 * Input: one line for each value, KEY BASE64, where BASE64 is the value in UTF-8. Output: "accepted", or "refused: REASON".
 */
public final class ConfigJudge {
    /** A node always has some; without any Java makes fewer checks. */
    private static final Map<String, ?> OF_THE_NODE = Map.of(TopicConfig.RETENTION_MS_CONFIG, "604800000");

    private ConfigJudge() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            int blank = line.indexOf(' ');
            byte[] value = Base64.getDecoder().decode(line.substring(blank + 1));
            out.println(verdict(line.substring(0, blank), new String(value, StandardCharsets.UTF_8)));
        }
        out.flush();
    }

    private static String verdict(String key, String value) {
        Map<String, String> values = Map.of(key, value);
        try {
            LogConfig.validate(Map.of(), values, OF_THE_NODE, false);
            new LogConfig(values);
            return "accepted";
        } catch (ConfigException | InvalidConfigurationException | IllegalArgumentException refusal) {
            return "refused: " + String.valueOf(refusal.getMessage()).replaceAll("\\s", " ");
        }
    }
}
