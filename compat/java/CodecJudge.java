import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/**
 * Reports what Kafka's generated message classes make of a message. Each line on standard input is a request, each line on
 * standard output an answer; words are separated by tabs. Runs with the jars of any Kafka version on the class path.
 *
 * <pre>
 * classes                        CLASS FIRST LAST HAS_JSON, for every generated message
 * make CLASS VERSION SEED MOOD   OBJECT BYTES JSON of a random instance; if MOOD is "astray" and not "sound", one of its
 *                                values may be impossible at this version
 * read CLASS VERSION BYTES       UNREAD OBJECT BYTES JSON: the number of unread bytes, the object, and the object encoded
 * parse CLASS VERSION JSON       OBJECT BYTES of the object that the JSON converter reads
 * </pre>
 *
 * BYTES are hexadecimal. JSON comes from Kafka's JsonConverter classes, "-" if there is none. OBJECT is our own format: a
 * JSON object with every field of every version under Java's name. A float is the hexadecimal text of its bits; bytes,
 * records and ids are hexadecimal strings; "?" lists the unknown tagged fields. If Kafka refuses, "!KIND REASON" replaces
 * the word (or the whole answer). KIND is "version" for an UnsupportedVersionException, "memory" for an OutOfMemoryError,
 * else "error".
 */
public final class CodecJudge {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final Map<String, Class<?>> messages = GeneratedClasses.messages();

    private CodecJudge() throws IOException {
    }

    public static void main(String[] arguments) throws IOException {
        CodecJudge judge = new CodecJudge();
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 16);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.print(judge.answer(line.split("\t", -1)));
            out.print('\n');
            if (!in.ready())
                out.flush();
        }
        out.flush();
    }

    private String answer(String[] request) {
        if (request[0].equals("classes"))
            return classes();
        Class<?> type = messages.get(request[1]);
        short version = Short.parseShort(request[2]);
        return switch (request[0]) {
            case "make" -> {
                Message made = new RandomInstances(Long.parseLong(request[3]), version, request[4].equals("sound"))
                    .make(type);
                yield dump(made) + "\t" + written(made, version) + "\t" + json(made, version);
            }
            case "read" -> verdict(() -> {
                Message message = GeneratedClasses.create(type);
                ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(request[3]));
                message.read(new ByteBufferAccessor(buffer), version);
                return buffer.remaining() + "\t" + dump(message) + "\t" + written(message, version) + "\t"
                    + json(message, version);
            });
            case "parse" -> verdict(() -> {
                Message message = parsed(type, version, request[3]);
                return dump(message) + "\t" + written(message, version);
            });
            default -> throw new IllegalArgumentException(request[0]);
        };
    }

    private String classes() {
        List<String> found = new ArrayList<>();
        messages.forEach((name, type) -> {
            Message message = GeneratedClasses.create(type);
            found.add(name + " " + message.lowestSupportedVersion() + " " + message.highestSupportedVersion() + " "
                + (GeneratedClasses.converter(type, "write") != null));
        });
        return String.join("\t", found);
    }

    // --- running Kafka's classes

    private static String written(Message message, short version) {
        return verdict(() -> {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            if (buffer.hasRemaining())
                throw new IllegalStateException(message.getClass() + " is shorter than its size");
            return HEX.formatHex(buffer.array());
        });
    }

    private static String json(Message message, short version) {
        Method write = GeneratedClasses.converter(message.getClass(), "write");
        return write == null ? "-" : verdict(() -> ascii(invoke(write, message, version).toString()));
    }

    private static Message parsed(Class<?> type, short version, String json) {
        try {
            return (Message) invoke(GeneratedClasses.converter(type, "read"), MAPPER.readTree(json), version);
        } catch (IOException notJson) {
            throw new IllegalStateException("a request with broken JSON: " + json, notJson);
        }
    }

    private static Object invoke(Method method, Object subject, short version) {
        try {
            return method.invoke(null, subject, version);
        } catch (InvocationTargetException refused) {
            if (refused.getCause() instanceof RuntimeException cause)
                throw cause;
            if (refused.getCause() instanceof Error cause)
                throw cause;
            throw new IllegalStateException(refused);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static String verdict(Supplier<String> work) {
        try {
            return work.get();
        } catch (UnsupportedVersionException refused) {
            return refusal("version", refused);
        } catch (OutOfMemoryError refused) {
            return refusal("memory", refused);
        } catch (RuntimeException refused) {
            return refusal("error", refused);
        }
    }

    private static String refusal(String kind, Throwable reason) {
        return "!" + kind + " " + ascii(reason.toString()).replaceAll("[\\x00-\\x1f]+", " ");
    }

    // --- objects as text

    private static String dump(Message message) {
        StringBuilder out = new StringBuilder();
        dumpStructure(out, message);
        return out.toString();
    }

    private static void dumpStructure(StringBuilder out, Message message) {
        out.append('{');
        for (GeneratedClasses.Slot slot : GeneratedClasses.slots(message.getClass())) {
            out.append('"').append(slot.field().getName()).append("\":");
            dumpValue(out, slot.of(message));
            out.append(',');
        }
        out.append("\"?\":[");
        String separator = "";
        for (RawTaggedField each : message.unknownTaggedFields()) {
            out.append(separator).append('[').append(each.tag()).append(",\"").append(HEX.formatHex(each.data())).append("\"]");
            separator = ",";
        }
        out.append("]}");
    }

    private static void dumpValue(StringBuilder out, Object value) {
        if (value instanceof Message structure) {
            dumpStructure(out, structure);
        } else if (value instanceof Collection<?> elements) {
            out.append('[');
            String separator = "";
            for (Object element : elements) {
                out.append(separator);
                dumpValue(out, element);
                separator = ",";
            }
            out.append(']');
        } else if (value == null || value instanceof Boolean || value instanceof Number && !(value instanceof Double)) {
            out.append(value);
        } else {
            out.append('"').append(text(value)).append('"');
        }
    }

    private static String text(Object value) {
        if (value instanceof String text)
            return escaped(text);
        if (value instanceof Double number)
            return HEX.toHexDigits(Double.doubleToRawLongBits(number));
        if (value instanceof Uuid id)
            return HEX.toHexDigits(id.getMostSignificantBits()) + HEX.toHexDigits(id.getLeastSignificantBits());
        if (value instanceof byte[] bytes)
            return HEX.formatHex(bytes);
        ByteBuffer buffer = value instanceof ByteBuffer direct ? direct : recordsBuffer(value);
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }

    private static ByteBuffer recordsBuffer(Object records) {
        return GeneratedClasses.attempt(() -> (ByteBuffer) records.getClass().getMethod("buffer").invoke(records));
    }

    private static String escaped(String text) {
        return ascii(text.replace("\\", "\\\\").replace("\"", "\\\""));
    }

    /** Escapes everything that isn't printable ASCII in a text such as JSON, so that no surrogate is lost. */
    private static String ascii(String text) {
        StringBuilder out = new StringBuilder(text.length());
        for (int i = 0; i < text.length(); i++) {
            char each = text.charAt(i);
            if (each >= ' ' && each < 0x7f)
                out.append(each);
            else
                out.append("\\u").append(HEX.toHexDigits((short) each));
        }
        return out.toString();
    }
}
