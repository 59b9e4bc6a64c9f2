import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/** Finds Kafka's generated message classes on the class path, and reads their fields by reflection. */
final class GeneratedClasses {
    /** A field of a generated class; element is the class of a collection's elements. */
    record Slot(Field field, Class<?> type, Class<?> element) {
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

    /** The fields of a class at one version: their wire types by plain name. */
    record Shape(Map<String, Type> types, Set<Integer> tags, boolean flexible) {
        /** Null if the field doesn't exist at this version. */
        Type wireType(Slot slot) {
            return types.get(plain(slot.field.getName()));
        }
    }

    interface Reflective<T> {
        T run() throws ReflectiveOperationException;
    }

    private static final Map<Class<?>, List<Slot>> SLOTS = new HashMap<>();
    private static final Map<String, Shape> SHAPES = new HashMap<>();

    private GeneratedClasses() {
    }

    /** Every message class by its simple name. */
    static Map<String, Class<?>> messages() throws IOException {
        Map<String, Class<?>> found = new TreeMap<>();
        for (String entry : System.getProperty("java.class.path").split(":")) {
            if (!Path.of(entry).getFileName().toString().startsWith("kafka-"))
                continue;
            try (JarFile jar = new JarFile(entry)) {
                for (Enumeration<JarEntry> entries = jar.entries(); entries.hasMoreElements();) {
                    String name = entries.nextElement().getName();
                    if (name.endsWith(".class") && !name.contains("$"))
                        addMessage(found, name.substring(0, name.length() - ".class".length()).replace('/', '.'));
                }
            }
        }
        return found;
    }

    private static void addMessage(Map<String, Class<?>> found, String name) {
        String home = name.substring(0, Math.max(0, name.lastIndexOf('.')));
        if (!home.endsWith(".generated") && !home.equals("org.apache.kafka.common.message")
                && !home.equals("org.apache.kafka.common.metadata"))
            return;
        Class<?> type = attempt(() -> Class.forName(name));
        if (Message.class.isAssignableFrom(type) && found.put(type.getSimpleName(), type) != null)
            throw new IllegalStateException("two messages are called " + type.getSimpleName());
    }

    /** The fields of a class, in the schema's order. */
    static List<Slot> slots(Class<?> type) {
        return SLOTS.computeIfAbsent(type, GeneratedClasses::findSlots);
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

    /** Null if the class doesn't exist at this version. */
    static Shape shape(Class<?> type, short version) {
        return SHAPES.computeIfAbsent(type.getName() + " " + version, key -> {
            Schema[] schemas = schemas(type);
            return version >= schemas.length || schemas[version] == null ? null : shapeOf(schemas[version]);
        });
    }

    static Schema[] schemas(Class<?> type) {
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

    /** Read by reflection, because Kafka 3.9 has no getter for them. */
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

    /** Kafka 3.9 has one type for nullable and other records. */
    static boolean nullable(Type wire) {
        return wire.isNullable() && wire != Type.RECORDS && wire != Type.COMPACT_RECORDS;
    }

    static boolean everFlexible(Class<?> type) {
        return Arrays.stream(schemas(type)).anyMatch(schema -> schema != null && hasTags(schema));
    }

    /** The common form of a schema's name (client_id) and a class's name (clientId). */
    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }

    /** Null if Kafka has no JSON converter for the class. */
    static Method converter(Class<?> type, String method) {
        try {
            Class<?> converter = Class.forName(type.getName() + "JsonConverter");
            Class<?> subject = method.equals("write") ? type : JsonNode.class;
            return attempt(() -> converter.getMethod(method, subject, short.class));
        } catch (ClassNotFoundException absent) {
            return null;
        }
    }

    static Message create(Class<?> type) {
        return (Message) newInstance(type);
    }

    static Object newInstance(Class<?> type) {
        return attempt(() -> type.getConstructor().newInstance());
    }

    static <T> T attempt(Reflective<T> work) {
        try {
            return work.run();
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
