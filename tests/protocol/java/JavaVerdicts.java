import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * What Kafka's own generated classes make of messages: for every line "name version hex" of the input one line
 * "name version hex verdict". The verdict is "error", or the hex of the message written again, the number of
 * bytes that were not read, and its JSON form ("-" where it has none). Run with Kafka's jars on the class path.
 */
public class JavaVerdicts {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
    };

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", 3);
            byte[] bytes = HexFormat.of().parseHex(parts[2]);
            out.println(line + " " + verdict(classOf(parts[0]), Short.parseShort(parts[1]), bytes));
        }
        out.flush();
    }

    private static Class<?> classOf(String name) throws ClassNotFoundException {
        for (String prefix : PACKAGES) {
            for (String suffix : new String[] {"Data", ""}) {
                try {
                    return Class.forName(prefix + name + suffix);
                } catch (ClassNotFoundException absent) {
                    continue;
                }
            }
        }
        throw new ClassNotFoundException(name);
    }

    private static String verdict(Class<?> type, short version, byte[] bytes) throws Exception {
        ApiMessage message = (ApiMessage) type.getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        ByteBuffer again;
        try {
            message.read(new ByteBufferAccessor(buffer), version);
            again = MessageUtil.toByteBufferAccessor(message, version).buffer();
        } catch (RuntimeException refused) {
            return "error";
        }
        byte[] written = new byte[again.remaining()];
        again.get(written);
        return HexFormat.of().formatHex(written) + " " + buffer.remaining() + " " + json(type, message, version);
    }

    private static String json(Class<?> type, ApiMessage message, short version) throws Exception {
        try {
            Class<?> converter = Class.forName(type.getName() + "JsonConverter");
            return converter.getMethod("write", type, short.class).invoke(null, message, version).toString();
        } catch (ClassNotFoundException absent) {
            return "-";
        } catch (InvocationTargetException refused) {
            return "-";
        }
    }
}
