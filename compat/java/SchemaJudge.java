package org.apache.kafka.message;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.message.checker.EvolutionVerifier;

/**
 * Reports whether Kafka's message generator accepts schemas, one on each line of standard input: "accepted NAME" or
 * "refused REASON". For an array of two schemas, it reports whether Kafka's checker of metadata schemas allows to change
 * the first into the second. With a folder as its argument, it writes the Java code of the accepted schemas there. It is in
 * the generator's package because the classes that generate one file have no public constructors.
 */
public final class SchemaJudge {
    private static final String MESSAGES = "org.apache.kafka.common.message";

    private SchemaJudge() {
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(line.startsWith("[") ? evolution(line) : verdict(line, arguments));
        out.flush();
    }

    private static String verdict(String schema, String[] arguments) throws IOException {
        MessageSpec spec;
        try {
            spec = MessageGenerator.JSON_SERDE.readValue(schema, MessageSpec.class);
            if (spec.hasValidVersion())
                for (MessageClassGenerator each : generators())
                    write(each.outputName(spec), generated(each, spec), arguments);
        } catch (IOException broken) {
            return refusal(broken);
        } catch (RuntimeException broken) {
            return refusal(broken);
        }
        return "accepted " + spec.name();
    }

    private static String evolution(String schemas) {
        try {
            MessageSpec[] pair = MessageGenerator.JSON_SERDE.readValue(schemas, MessageSpec[].class);
            new EvolutionVerifier(pair[0], pair[1]).verify();
            return "accepted " + pair[1].name();
        } catch (Exception refused) {
            return refusal(refused);
        }
    }

    private static List<MessageClassGenerator> generators() {
        return List.of(new MessageDataGenerator(MESSAGES), new JsonConverterGenerator(MESSAGES));
    }

    private static String generated(MessageClassGenerator generator, MessageSpec spec) {
        StringWriter text = new StringWriter();
        try (BufferedWriter writer = new BufferedWriter(text)) {
            generator.generateAndWrite(spec, writer);
        } catch (RuntimeException refused) {
            throw refused;
        } catch (Exception refused) {
            throw new IllegalArgumentException(refused);
        }
        return text.toString();
    }

    private static void write(String name, String text, String[] arguments) throws IOException {
        if (arguments.length > 0)
            Files.writeString(Path.of(arguments[0], name + ".java"), text);
    }

    private static String refusal(Exception broken) {
        return "refused " + broken.toString().replaceAll("\\s+", " ");
    }
}
