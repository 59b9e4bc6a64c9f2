import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.regex.Pattern;

import org.apache.kafka.server.metrics.ClientMetricsConfigs;

/**
 * Says of regular expressions whether Java accepts them, and of values of "match" of client metrics whether Kafka does.
 *
 * Input: one line for each, "regex BASE64" or "match BASE64", in UTF-8. Output: "accepted", or "refused: REASON".
 */
public final class MatchJudge {
    private MatchJudge() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            int blank = line.indexOf(' ');
            byte[] text = Base64.getDecoder().decode(line.substring(blank + 1));
            out.println(verdict(line.startsWith("match"), new String(text, StandardCharsets.UTF_8)));
        }
        out.flush();
    }

    private static String verdict(boolean isMatch, String text) {
        try {
            if (isMatch)
                ClientMetricsConfigs.validate("subscription", Map.of(ClientMetricsConfigs.MATCH_CONFIG, text));
            else
                Pattern.compile(text);
            return "accepted";
        } catch (RuntimeException refusal) {
            return "refused: " + String.valueOf(refusal.getMessage()).replaceAll("\\s", " ");
        }
    }
}
