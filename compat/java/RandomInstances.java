import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Makes a random instance, always the same one for the same seed. Some instances are regular: the elements of an array have
 * the same nulls, lengths and counts, except for a few. Fast decoders rely on such regularity.
 */
final class RandomInstances {
    private static final String[] TEXTS = {
        "a", "topic-", "Z.9_", " ", "\"\\", "\0", "\n", "\u007f", "\u00e4", "\u20ac", "\u65e5\u672c", "\ud83d\ude00",
        "\ufffd", "\uffff", "\ud800", "\udc00", "e\u0301",
    };
    private static final int[] LENGTHS = {0, 1, 2, 7, 20};
    private static final int[] EDGES = {62, 63, 64, 125, 126, 127, 128, 300};
    private static final int[] LONG = {16_382, 16_383, 16_384, 32_766, 32_767};

    private final long seed;
    private final Random random;
    private final short version;
    private final boolean sound;
    private final boolean sparse;
    /** Decides what is null, how long and how many; the other generator makes the values. */
    private Random form;
    private boolean regular;
    private boolean hasLong;
    private final List<Message> structures = new ArrayList<>();
    private int budget = 200;

    RandomInstances(long seed, short version, boolean sound) {
        this.seed = seed;
        this.random = new Random(seed);
        this.form = random;
        this.version = version;
        this.sound = sound;
        this.sparse = random.nextInt(4) == 0;
        this.regular = random.nextInt(4) == 0;
    }

    Message make(Class<?> type) {
        Message message = structure(type, 0);
        if (regular) {
            regular = false;
            form = random;
            if (chance(50))
                deviate(pick(structures));
        }
        if (!sound && !(chance(50) && fillAbsent())) {
            for (int tries = 0; tries < 10; tries++) {
                if (spoil(pick(structures)))
                    break;
            }
        }
        return message;
    }

    private Message structure(Class<?> type, int depth) {
        Message made = GeneratedClasses.create(type);
        structures.add(made);
        GeneratedClasses.Shape shape = GeneratedClasses.shape(type, version);
        for (GeneratedClasses.Slot slot : GeneratedClasses.slots(type)) {
            Type wire = shape == null ? null : shape.wireType(slot);
            if (wire == null)
                continue;
            if (regular)
                form = new Random(seed ^ slot.field().hashCode());
            boolean keepsDefault = chance(sparse ? 60 : 10);
            if (keepsDefault && (GeneratedClasses.nullable(wire) || slot.of(made) != null))
                continue;
            if (GeneratedClasses.nullable(wire) && chance(20))
                slot.put(made, null);
            else
                slot.put(made, value(slot, wire, depth));
        }
        if (shape != null && shape.flexible() && chance(15))
            addUnknownTags(made);
        return made;
    }

    /** Makes one irregular value, or unknown tags. */
    private void deviate(Message made) {
        GeneratedClasses.Shape shape = GeneratedClasses.shape(made.getClass(), version);
        if (shape == null)
            return;
        for (GeneratedClasses.Slot slot : GeneratedClasses.slots(made.getClass())) {
            Type wire = shape.wireType(slot);
            if (wire != null && chance(20)) {
                slot.put(made, value(slot, wire, 1));
                return;
            }
        }
        if (shape.flexible() && made.unknownTaggedFields().isEmpty())
            addUnknownTags(made);
    }

    private void addUnknownTags(Message made) {
        Set<Integer> known = new HashSet<>();
        for (short each = 0; each < GeneratedClasses.schemas(made.getClass()).length; each++) {
            GeneratedClasses.Shape other = GeneratedClasses.shape(made.getClass(), each);
            if (other != null)
                known.addAll(other.tags());
        }
        int tag = 0;
        for (int count = 1 + form.nextInt(3); count > 0; count--) {
            tag += any(0, 1, 2, 7, 120, 200, 70_000);
            while (known.contains(tag))
                tag++;
            made.unknownTaggedFields().add(new RawTaggedField(tag, bytes()));
            tag++;
        }
        if (chance(5))
            made.unknownTaggedFields().add(new RawTaggedField(Integer.MAX_VALUE - 1, bytes()));
    }

    private Object value(GeneratedClasses.Slot slot, Type wire, int depth) {
        if (slot.element() == null)
            return single(slot.type(), wire, depth);
        Collection<Object> made = emptyCollection(slot.type());
        for (int count = elements(slot.element(), depth); count > 0; count--)
            made.add(single(slot.element(), wire.arrayElementType().orElseThrow(), depth + 1));
        return made;
    }

    @SuppressWarnings("unchecked")
    private Collection<Object> emptyCollection(Class<?> type) {
        if (type.equals(List.class))
            return new ArrayList<>();
        return (Collection<Object>) GeneratedClasses.attempt(() -> type.getConstructor(int.class).newInstance(0));
    }

    private int elements(Class<?> element, int depth) {
        boolean single = !Message.class.isAssignableFrom(element);
        int count = regular && depth == 0 && !single ? any(4, 5, 6, 9, 20) : any(0, 1, 1, 2, 3);
        if (chance(2))
            count = single ? any(15, 16, 17, 18, 126, 127, 128, 300) : any(8, 127, 128);
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
            return wire == Type.UINT16 ? (int) unsigned(16) : (int) integer(32);
        if (type == long.class || type == Long.class)
            return wire == Type.UNSIGNED_INT32 ? unsigned(32) : integer(64);
        if (type == double.class || type == Double.class)
            return number();
        if (type == String.class)
            return string();
        if (type == Uuid.class)
            return pick(Uuid.ZERO_UUID, new Uuid(0, 1), new Uuid(random.nextLong(), random.nextLong()));
        if (type == byte[].class)
            return bytes();
        return type == ByteBuffer.class ? ByteBuffer.wrap(bytes()) : records();
    }

    /** A small, extreme or arbitrary number. */
    private long integer(int bits) {
        long lowest = -1L << bits - 1;
        return switch (random.nextInt(8)) {
            case 0 -> pick(0, 1, -1, 2, 127, 128, -128, 255);
            case 1 -> pick(lowest, ~lowest, lowest + 1);
            case 2, 3, 4 -> random.nextInt(8);
            default -> random.nextLong() << 64 - bits >> 64 - bits;
        };
    }

    private long unsigned(int bits) {
        long any = integer(bits) & ~(-1L << bits);
        return random.nextInt(8) == 0 ? pick(0L, ~(-1L << bits)) : any;
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
        if (regular)
            return letters(length);
        if (random.nextBoolean() || length > 1000)
            return pick("x", "\u00e4", "\u20ac").repeat(length > 1000 ? length / 3 : length) + "y".repeat(length % 3);
        StringBuilder made = new StringBuilder();
        for (; length > 0; length--)
            made.append(pick(TEXTS));
        return made.toString();
    }

    private String letters(int length) {
        byte[] made = new byte[length];
        for (int i = 0; i < length; i++)
            made[i] = (byte) ('a' + random.nextInt(26));
        return new String(made, StandardCharsets.US_ASCII);
    }

    private int length() {
        int draw = form.nextInt(1000);
        return draw < 2 && mayBeLong() ? any(LONG) : draw < 60 ? any(EDGES) : any(LENGTHS);
    }

    /** Only once in an instance; more would take most of the time. */
    private boolean mayBeLong() {
        boolean may = !regular && !hasLong;
        hasLong |= may;
        return may;
    }

    private byte[] bytes() {
        byte[] made = new byte[form.nextInt(300) == 0 && mayBeLong() ? 70_000 : length()];
        random.nextBytes(made);
        return made;
    }

    /** Found by reflection, because the class has moved between versions. */
    private Object records() {
        ByteBuffer content = ByteBuffer.wrap(bytes());
        return GeneratedClasses.attempt(() -> memoryRecords().getMethod("readableRecords", ByteBuffer.class).invoke(null, content));
    }

    private static Class<?> memoryRecords() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.record.internal.MemoryRecords");
        } catch (ClassNotFoundException beforeThat) {
            return Class.forName("org.apache.kafka.common.record.MemoryRecords");
        }
    }

    // --- one thing that is impossible at this version

    /** Gives a value to a field that does not exist at this version, if there is one. */
    private boolean fillAbsent() {
        List<Runnable> choices = new ArrayList<>();
        for (Message structure : structures) {
            GeneratedClasses.Shape shape = GeneratedClasses.shape(structure.getClass(), version);
            for (GeneratedClasses.Slot slot : GeneratedClasses.slots(structure.getClass())) {
                if (shape != null && shape.wireType(slot) == null)
                    choices.add(() -> slot.put(structure, absentValue(slot)));
            }
        }
        if (choices.isEmpty())
            return false;
        pick(choices).run();
        return true;
    }

    private Object absentValue(GeneratedClasses.Slot slot) {
        if (slot.type() == boolean.class)
            return chance(80);
        return !slot.type().isPrimitive() && chance(25) ? null : anyValue(slot.type(), slot.element(), 0);
    }

    private boolean spoil(Message structure) {
        GeneratedClasses.Shape shape = GeneratedClasses.shape(structure.getClass(), version);
        if (shape == null)
            return false;
        List<GeneratedClasses.Slot> slots = GeneratedClasses.slots(structure.getClass());
        if (slots.isEmpty() || chance(15))
            return spoilTags(structure, shape);
        GeneratedClasses.Slot slot = pick(slots);
        Type wire = shape.wireType(slot);
        return wire != null && spoilPresent(structure, slot, wire);
    }

    private boolean spoilTags(Message structure, GeneratedClasses.Shape shape) {
        List<RawTaggedField> tags = structure.unknownTaggedFields();
        if (!shape.flexible()) {
            if (!GeneratedClasses.everFlexible(structure.getClass()))
                return false;
            tags.add(new RawTaggedField(0, bytes()));
            return true;
        }
        tags.add(new RawTaggedField(pick(3, 9, 1_000, Integer.MAX_VALUE, -1), bytes()));
        tags.add(new RawTaggedField(pick(0, 1, 3, 8, 9), bytes()));
        return true;
    }

    /** A value for a field that doesn't exist at this version, usually not the default. */
    private Object anyValue(Class<?> type, Class<?> element, int depth) {
        if (element != null) {
            Collection<Object> made = emptyCollection(type);
            for (int count = random.nextInt(3); count > 0; count--)
                made.add(anyValue(element, null, depth + 1));
            return made;
        }
        if (!Message.class.isAssignableFrom(type))
            return single(type, Type.INT8, depth);
        Object made = GeneratedClasses.newInstance(type);
        for (GeneratedClasses.Slot slot : GeneratedClasses.slots(type)) {
            if (depth < 3 && random.nextBoolean())
                slot.put(made, anyValue(slot.type(), slot.element(), depth + 1));
        }
        return made;
    }

    private boolean spoilPresent(Message structure, GeneratedClasses.Slot slot, Type wire) {
        if (slot.type().isPrimitive())
            return false;
        Object value = slot.of(structure);
        if (value instanceof List<?> && random.nextBoolean()) {
            Object element = slot.element() == String.class && random.nextBoolean() ? tooLong() : null;
            listOf(value).add(element);
            return true;
        }
        if (value instanceof String && random.nextBoolean()) {
            slot.put(structure, tooLong());
            return true;
        }
        if (GeneratedClasses.nullable(wire))
            return false;
        slot.put(structure, null);
        return true;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> listOf(Object value) {
        return (List<Object>) value;
    }

    private String tooLong() {
        return random.nextBoolean() ? "x".repeat(32_768) : "\u20ac".repeat(10_923);
    }

    private boolean chance(int percent) {
        return form.nextInt(100) < percent;
    }

    /** Draws lengths and counts. */
    private int any(int... choices) {
        return choices[form.nextInt(choices.length)];
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
