import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;

import kafka.server.KafkaConfig;

/**
 * Says of values that are set dynamically on brokers whether a controller's process takes them, each as the only one.
 *
 * Input: one line for each value, SCOPE KEY BASE64, where SCOPE is "one" (one broker) or "all", and BASE64 is the value in
 * UTF-8. Output: "taken" or "left out".
 */
public final class BrokerConfigJudge {
    private BrokerConfigJudge() {
    }

    public static void main(String[] arguments) throws Exception {
        KafkaConfig config = new KafkaConfig(Map.of(
            "process.roles", "controller",
            "node.id", "3000",
            "controller.listener.names", "CONTROLLER",
            "listeners", "CONTROLLER://localhost:9093",
            "controller.quorum.voters", "3000@localhost:9093"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            Properties stored = new Properties();
            stored.setProperty(words[1], new String(Base64.getDecoder().decode(words[2]), StandardCharsets.UTF_8));
            Properties taken = config.dynamicConfig().fromPersistentProps(stored, words[0].equals("one"));
            out.println(taken.isEmpty() ? "verdict left out" : "verdict taken");
        }
        out.flush();
    }
}
