import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Says what Kafka's generated message classes make of a message, one request a line on standard input, one answer a line
 * on standard output, words separated by tabs. Run with any Kafka version's jars on the class path.
 *
 * <pre>
 * classes                        CLASS FIRST LAST HAS_JSON, for every generated message
 * make CLASS VERSION SEED MOOD   OBJECT BYTES JSON of a random instance; MOOD is "sound", or "astray": then one thing in it
 *                                may be impossible at this version
 * read CLASS VERSION BYTES       UNREAD OBJECT BYTES JSON: the bytes left over, what was read, and that written again
 * parse CLASS VERSION JSON       OBJECT BYTES of what the JSON converter reads
 * </pre>
 *
 * BYTES are hexadecimal. JSON is that of Kafka's JsonConverter classes, "-" where there is none. OBJECT is a form of our own,
 * which holds every field whatever the version: a JSON object by Java's field names, in which a float is a string of its
 * bits, bytes, records and ids are hexadecimal strings, and "?" lists the unknown tagged fields. In the place of each of
 * these (or of the whole answer) stands "!KIND REASON" where Kafka refuses; KIND is "version" for an
 * UnsupportedVersionException, "memory" where it ran out of memory, and else "error".
 */
public final class CodecJudge {
    /** A field of a generated class; element is what a collection holds. */
    private record Slot(Field field, Class<?> type, Class<?> element) {
        Object of(Object owner) {
            return attempt(() -> field.get(owner));
        }

        void put(Object owner, Object value) {
            attempt(() -> {
                field.set(owner, value);
                return null;
            });
        }
    }

    /** What a class looks like at one version: its fields' wire types by plain name. */
    private record Shape(Map<String, Type> types, Set<Integer> tags, boolean flexible) {
    }

    private interface Reflective<T> {
        T run() throws ReflectiveOperationException;
    }

    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Map<String, Class<?>> MESSAGES = new TreeMap<>();
    private static final Map<Class<?>, List<Slot>> SLOTS = new HashMap<>();
    private static final Map<String, Shape> SHAPES = new HashMap<>();

    private CodecJudge() {
    }

    public static void main(String[] arguments) throws IOException {
        findMessages();
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 16);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.print(answer(line.split("\t", -1)));
            out.print('\n');
            if (!in.ready())
                out.flush();
        }
        out.flush();
    }

    private static String answer(String[] request) {
        if (request[0].equals("classes"))
            return classes();
        Class<?> type = MESSAGES.get(request[1]);
        short version = Short.parseShort(request[2]);
        return switch (request[0]) {
            case "make" -> {
                Message made = new Maker(Long.parseLong(request[3]), version, request[4].equals("sound")).make(type);
                yield dump(made) + "\t" + written(made, version) + "\t" + json(made, version);
            }
            case "read" -> verdict(() -> {
                Message message = create(type);
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

    // --- what there is

    private static void findMessages() throws IOException {
        for (String entry : System.getProperty("java.class.path").split(":")) {
            if (!Path.of(entry).getFileName().toString().startsWith("kafka-"))
                continue;
            try (JarFile jar = new JarFile(entry)) {
                for (Enumeration<JarEntry> found = jar.entries(); found.hasMoreElements();) {
                    String name = found.nextElement().getName();
                    if (name.endsWith(".class") && !name.contains("$"))
                        addMessage(name.substring(0, name.length() - ".class".length()).replace('/', '.'));
                }
            }
        }
    }

    private static void addMessage(String name) {
        String home = name.substring(0, Math.max(0, name.lastIndexOf('.')));
        if (!home.endsWith(".generated") && !home.equals("org.apache.kafka.common.message")
                && !home.equals("org.apache.kafka.common.metadata"))
            return;
        Class<?> type = attempt(() -> Class.forName(name));
        if (Message.class.isAssignableFrom(type) && MESSAGES.put(type.getSimpleName(), type) != null)
            throw new IllegalStateException("two messages are called " + type.getSimpleName());
    }

    private static String classes() {
        List<String> found = new ArrayList<>();
        MESSAGES.forEach((name, type) -> {
            Message message = create(type);
            found.add(name + " " + message.lowestSupportedVersion() + " " + message.highestSupportedVersion() + " "
                + (converter(type, "write") != null));
        });
        return String.join("\t", found);
    }

    private static List<Slot> slots(Class<?> type) {
        return SLOTS.computeIfAbsent(type, CodecJudge::findSlots);
    }

    private static List<Slot> findSlots(Class<?> type) {
        List<Slot> found = new ArrayList<>();
        boolean linked = Arrays.stream(type.getInterfaces()).anyMatch(each -> each.getSimpleName().equals("Element"));
        for (Field field : type.getDeclaredFields()) {
            String name = field.getName();
            if (Modifier.isStatic(field.getModifiers()) || name.startsWith("_")
                    || linked && (name.equals("next") || name.equals("prev")))
                continue;
            field.setAccessible(true);
            found.add(new Slot(field, field.getType(), elementOf(field)));
        }
        return found;
    }

    private static Class<?> elementOf(Field field) {
        if (!Collection.class.isAssignableFrom(field.getType()))
            return null;
        java.lang.reflect.Type generic = field.getType().equals(List.class)
            ? field.getGenericType() : field.getType().getGenericSuperclass();
        return (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
    }

    /** Null where the class has no form at this version. */
    private static Shape shape(Class<?> type, short version) {
        return SHAPES.computeIfAbsent(type.getName() + " " + version, key -> {
            Schema[] schemas = schemas(type);
            return version >= schemas.length || schemas[version] == null ? null : shapeOf(schemas[version]);
        });
    }

    private static Schema[] schemas(Class<?> type) {
        return attempt(() -> (Schema[]) type.getField("SCHEMAS").get(null));
    }

    private static Shape shapeOf(Schema schema) {
        Shape shape = new Shape(new HashMap<>(), new HashSet<>(), hasTags(schema));
        for (BoundField each : schema.fields()) {
            if (each.def.type instanceof TaggedFields tagged) {
                fieldsOf(tagged).forEach((tag, field) -> {
                    shape.types.put(plain(field.name), field.type);
                    shape.tags.add(tag);
                });
            } else {
                shape.types.put(plain(each.def.name), each.def.type);
            }
        }
        return shape;
    }

    /** Kafka 3.9 has no getter for them. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> fieldsOf(TaggedFields tagged) {
        return attempt(() -> {
            Field field = TaggedFields.class.getDeclaredField("fields");
            field.setAccessible(true);
            return (Map<Integer, org.apache.kafka.common.protocol.types.Field>) field.get(tagged);
        });
    }

    private static boolean hasTags(Schema schema) {
        BoundField[] fields = schema.fields();
        return fields.length > 0 && fields[fields.length - 1].def.type instanceof TaggedFields;
    }

    /** Kafka 3.9 has one type for records that may be null and for those that may not. */
    private static boolean nullable(Type wire) {
        return wire.isNullable() && wire != Type.RECORDS && wire != Type.COMPACT_RECORDS;
    }

    private static boolean everFlexible(Class<?> type) {
        return Arrays.stream(schemas(type)).anyMatch(schema -> schema != null && hasTags(schema));
    }

    /** What a schema's name (client_id) and a class's (clientId) have in common. */
    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(java.util.Locale.ROOT);
    }

    // --- what Kafka makes of a message

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
        Method write = converter(message.getClass(), "write");
        return write == null ? "-" : verdict(() -> ascii(invoke(write, message, version).toString()));
    }

    private static Message parsed(Class<?> type, short version, String json) {
        try {
            return (Message) invoke(converter(type, "read"), MAPPER.readTree(json), version);
        } catch (IOException notJson) {
            throw new IllegalStateException("a request with broken JSON: " + json, notJson);
        }
    }

    /** Null where Kafka has no JSON converter for the class. */
    private static Method converter(Class<?> type, String method) {
        try {
            Class<?> converter = Class.forName(type.getName() + "JsonConverter");
            Class<?> subject = method.equals("write") ? type : JsonNode.class;
            return attempt(() -> converter.getMethod(method, subject, short.class));
        } catch (ClassNotFoundException absent) {
            return null;
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

    private static Message create(Class<?> type) {
        return (Message) newInstance(type);
    }

    private static Object newInstance(Class<?> type) {
        return attempt(() -> type.getConstructor().newInstance());
    }

    private static <T> T attempt(Reflective<T> work) {
        try {
            return work.run();
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    // --- objects as text

    private static String dump(Message message) {
        StringBuilder out = new StringBuilder();
        dumpStructure(out, message);
        return out.toString();
    }

    private static void dumpStructure(StringBuilder out, Message message) {
        out.append('{');
        for (Slot slot : slots(message.getClass())) {
            out.append('"').append(slot.field.getName()).append("\":");
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
        return attempt(() -> (ByteBuffer) records.getClass().getMethod("buffer").invoke(records));
    }

    private static String escaped(String text) {
        return ascii(text.replace("\\", "\\\\").replace("\"", "\\\""));
    }

    /** JSON text, or any other, with everything escaped that is not printable ASCII; no surrogate gets lost on the way. */
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

    // --- random instances

    /** Makes one instance; the same seed makes the same one. */
    private static final class Maker {
        private static final String[] TEXTS = {
            "a", "topic-", "Z.9_", " ", "\"\\", "\0", "\n", "\u007f", "\u00e4", "\u20ac", "\u65e5\u672c", "\ud83d\ude00",
            "\ufffd", "\uffff", "\ud800", "\udc00", "e\u0301",
        };
        private static final int[] LENGTHS = {0, 1, 2, 7, 20};
        private static final int[] EDGES = {62, 63, 64, 125, 126, 127, 128, 300};
        private static final int[] LONG = {16_382, 16_383, 16_384, 32_766, 32_767};

        private final Random random;
        private final short version;
        private final boolean sound;
        private final boolean sparse;
        private final List<Message> structures = new ArrayList<>();
        private int budget = 300;

        Maker(long seed, short version, boolean sound) {
            this.random = new Random(seed);
            this.version = version;
            this.sound = sound;
            this.sparse = random.nextInt(4) == 0;
        }

        Message make(Class<?> type) {
            Message message = structure(type, 0);
            for (int tries = 0; !sound && tries < 10; tries++) {
                if (spoil(pick(structures)))
                    break;
            }
            return message;
        }

        private Message structure(Class<?> type, int depth) {
            Message made = create(type);
            structures.add(made);
            Shape shape = shape(type, version);
            for (Slot slot : slots(type)) {
                Type wire = shape == null ? null : shape.types.get(plain(slot.field.getName()));
                if (wire == null)
                    continue;
                boolean keepsDefault = chance(sparse ? 60 : 10);
                if (keepsDefault && (nullable(wire) || slot.of(made) != null))
                    continue;
                if (nullable(wire) && chance(20))
                    slot.put(made, null);
                else
                    slot.put(made, value(slot, wire, depth));
            }
            if (shape != null && shape.flexible && chance(15))
                addUnknownTags(made);
            return made;
        }

        private void addUnknownTags(Message made) {
            Set<Integer> known = new HashSet<>();
            for (short each = 0; each < schemas(made.getClass()).length; each++) {
                Shape other = shape(made.getClass(), each);
                if (other != null)
                    known.addAll(other.tags);
            }
            int tag = 0;
            for (int count = 1 + random.nextInt(3); count > 0; count--) {
                tag += pick(0, 1, 2, 7, 120, 200, 70_000);
                while (known.contains(tag))
                    tag++;
                made.unknownTaggedFields().add(new RawTaggedField(tag, bytes()));
                tag++;
            }
            if (chance(5))
                made.unknownTaggedFields().add(new RawTaggedField(Integer.MAX_VALUE - 1, bytes()));
        }

        private Object value(Slot slot, Type wire, int depth) {
            if (slot.element == null)
                return single(slot.type, wire, depth);
            Collection<Object> made = emptyCollection(slot.type);
            for (int count = elements(slot.element, depth); count > 0; count--)
                made.add(single(slot.element, wire.arrayElementType().orElseThrow(), depth + 1));
            return made;
        }

        @SuppressWarnings("unchecked")
        private Collection<Object> emptyCollection(Class<?> type) {
            if (type.equals(List.class))
                return new ArrayList<>();
            return (Collection<Object>) attempt(() -> type.getConstructor(int.class).newInstance(0));
        }

        private int elements(Class<?> element, int depth) {
            int count = pick(0, 1, 1, 2, 3);
            if (chance(4))
                count = Message.class.isAssignableFrom(element) ? pick(8, 127, 128) : pick(15, 16, 17, 18, 126, 127, 128, 300);
            count = Math.min(count, Math.max(budget, depth == 0 ? 1 : 0));
            budget -= count;
            return count;
        }

        private Object single(Class<?> type, Type wire, int depth) {
            if (Message.class.isAssignableFrom(type))
                return structure(type, depth + 1);
            if (type == boolean.class || type == Boolean.class)
                return random.nextBoolean();
            if (type == byte.class || type == Byte.class)
                return (byte) integer(8);
            if (type == short.class || type == Short.class)
                return (short) integer(16);
            if (type == int.class || type == Integer.class)
                return wire == Type.UINT16 ? (int) integer(16) & 0xffff : (int) integer(32);
            if (type == long.class || type == Long.class)
                return wire == Type.UNSIGNED_INT32 ? integer(32) & 0xffffffffL : integer(64);
            if (type == double.class)
                return number();
            if (type == String.class)
                return string();
            if (type == Uuid.class)
                return pick(Uuid.ZERO_UUID, new Uuid(0, 1), new Uuid(random.nextLong(), random.nextLong()));
            if (type == byte[].class)
                return bytes();
            return type == ByteBuffer.class ? ByteBuffer.wrap(bytes()) : records();
        }

        /** Small, extreme or any. */
        private long integer(int bits) {
            long lowest = -1L << bits - 1;
            return switch (random.nextInt(8)) {
                case 0 -> pick(0, 1, -1, 2, 127, 128, -128, 255);
                case 1 -> pick(lowest, ~lowest, lowest + 1);
                case 2, 3, 4 -> random.nextInt(8);
                default -> random.nextLong() << 64 - bits >> 64 - bits;
            };
        }

        private double number() {
            if (random.nextBoolean())
                return random.nextGaussian() * 1e6;
            long quietNan = 0x7ff8000000000000L;
            return pick(0.0, -0.0, 1.0, Double.NaN, Double.longBitsToDouble(quietNan | random.nextInt(1000)),
                Double.longBitsToDouble(quietNan | Long.MIN_VALUE), Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY,
                Double.MAX_VALUE, Double.MIN_VALUE, 0.1, 1e22, Double.longBitsToDouble(random.nextLong()));
        }

        private String string() {
            int length = length();
            if (random.nextBoolean() || length > 1000)
                return pick("x", "\u00e4", "\u20ac").repeat(length > 1000 ? length / 3 : length) + "y".repeat(length % 3);
            StringBuilder made = new StringBuilder();
            for (; length > 0; length--)
                made.append(pick(TEXTS));
            return made.toString();
        }

        private int length() {
            int draw = random.nextInt(1000);
            return draw < 5 ? LONG[random.nextInt(LONG.length)]
                : draw < 60 ? EDGES[random.nextInt(EDGES.length)]
                : LENGTHS[random.nextInt(LENGTHS.length)];
        }

        private byte[] bytes() {
            byte[] made = new byte[random.nextInt(1000) == 0 ? 70_000 : length()];
            random.nextBytes(made);
            return made;
        }

        /** Their class has moved between versions. */
        private Object records() {
            ByteBuffer content = ByteBuffer.wrap(bytes());
            return attempt(() -> memoryRecords().getMethod("readableRecords", ByteBuffer.class).invoke(null, content));
        }

        private static Class<?> memoryRecords() throws ClassNotFoundException {
            try {
                return Class.forName("org.apache.kafka.common.record.internal.MemoryRecords");
            } catch (ClassNotFoundException beforeThat) {
                return Class.forName("org.apache.kafka.common.record.MemoryRecords");
            }
        }

        // --- one thing that is impossible at this version

        private boolean spoil(Message structure) {
            Shape shape = shape(structure.getClass(), version);
            if (shape == null)
                return false;
            List<Slot> slots = slots(structure.getClass());
            if (slots.isEmpty() || chance(15))
                return spoilTags(structure, shape);
            Slot slot = pick(slots);
            Type wire = shape.types.get(plain(slot.field.getName()));
            return wire == null ? fillAbsent(structure, slot) : spoilPresent(structure, slot, wire);
        }

        private boolean spoilTags(Message structure, Shape shape) {
            List<RawTaggedField> tags = structure.unknownTaggedFields();
            if (!shape.flexible) {
                if (!everFlexible(structure.getClass()))
                    return false;
                tags.add(new RawTaggedField(0, bytes()));
                return true;
            }
            tags.add(new RawTaggedField(pick(3, 9, 1_000, Integer.MAX_VALUE, -1), bytes()));
            tags.add(new RawTaggedField(pick(0, 1, 3, 8, 9), bytes()));
            return true;
        }

        private boolean fillAbsent(Message structure, Slot slot) {
            slot.put(structure, !slot.type.isPrimitive() && chance(25) ? null : anyValue(slot.type, slot.element, 0));
            return true;
        }

        /** A value of a field that has no form at this version; most often not the default. */
        private Object anyValue(Class<?> type, Class<?> element, int depth) {
            if (element != null) {
                Collection<Object> made = emptyCollection(type);
                for (int count = random.nextInt(3); count > 0; count--)
                    made.add(anyValue(element, null, depth + 1));
                return made;
            }
            if (!Message.class.isAssignableFrom(type))
                return single(type, Type.INT8, depth);
            Object made = newInstance(type);
            for (Slot slot : slots(type)) {
                if (depth < 3 && random.nextBoolean())
                    slot.put(made, anyValue(slot.type, slot.element, depth + 1));
            }
            return made;
        }

        private boolean spoilPresent(Message structure, Slot slot, Type wire) {
            if (slot.type.isPrimitive())
                return false;
            Object value = slot.of(structure);
            if (value instanceof List<?> && random.nextBoolean()) {
                Object element = slot.element == String.class && random.nextBoolean() ? tooLong() : null;
                emptyOr(value).add(element);
                return true;
            }
            if (value instanceof String && random.nextBoolean()) {
                slot.put(structure, tooLong());
                return true;
            }
            if (nullable(wire))
                return false;
            slot.put(structure, null);
            return true;
        }

        @SuppressWarnings("unchecked")
        private static List<Object> emptyOr(Object value) {
            return (List<Object>) value;
        }

        private String tooLong() {
            return random.nextBoolean() ? "x".repeat(32_768) : "\u20ac".repeat(10_923);
        }

        private boolean chance(int percent) {
            return random.nextInt(100) < percent;
        }

        private int pick(int... choices) {
            return choices[random.nextInt(choices.length)];
        }

        private long pick(long... choices) {
            return choices[random.nextInt(choices.length)];
        }

        private double pick(double... choices) {
            return choices[random.nextInt(choices.length)];
        }

        @SafeVarargs
        private <T> T pick(T... choices) {
            return choices[random.nextInt(choices.length)];
        }

        private <T> T pick(List<T> choices) {
            return choices.get(random.nextInt(choices.size()));
        }
    }
}
