// Prints the facts of Kafka's configuration definitions as JSON: names, types, defaults, bounds, synonyms. No prose.
// Compile and run it with a Kafka distribution's jars on the class path; see README.md beside this file.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

public final class ConfigFacts {
    private static final ObjectMapper JSON =
        new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    public static void main(String[] args) throws Exception {
        ObjectNode root = JSON.createObjectNode();
        root.put("kafka", kafkaVersion());
        root.set("topic", definitions(LogConfig.configKeys()));
        root.set("broker", definitions(brokerDefinitions().configKeys()));
        root.set("brokerDynamicOnly", dynamicOnly());
        root.set("group", definitions(groupDefinitions().configKeys()));
        root.set("clientMetrics", definitions(clientMetricsDefinitions().configKeys()));
        root.set("topicSynonyms", topicSynonyms());
        root.set("groupSynonyms", groupSynonyms());
        root.set("brokerDynamic", names(DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS));
        root.set("brokerDynamicPerBroker", names(dynamicPerBroker()));
        root.set("brokerDynamicPerListener", names(SslConfigs.RECONFIGURABLE_CONFIGS));
        System.out.println(JSON.writeValueAsString(root));
    }

    private static String kafkaVersion() throws Exception {
        java.util.Properties properties = new java.util.Properties();
        try (java.io.InputStream in = ConfigFacts.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            properties.load(in);
        }
        return properties.getProperty("version");
    }

    /** The dynamic keys of a broker that can't be set for all brokers at once. */
    private static Set<String> dynamicPerBroker() {
        return DynamicBrokerConfig.dynamicConfigUpdateModes().entrySet().stream()
            .filter(mode -> mode.getValue().equals("per-broker"))
            .map(Map.Entry::getKey)
            .collect(Collectors.toSet());
    }

    private static ConfigDef brokerDefinitions() {
        return kafka.server.KafkaConfig.configDef();
    }

    private static ConfigDef groupDefinitions() throws Exception {
        return (ConfigDef) staticMember(GroupConfig.class, ConfigDef.class);
    }

    private static ConfigDef clientMetricsDefinitions() throws Exception {
        return (ConfigDef) staticMember(ClientMetricsConfigs.class, ConfigDef.class);
    }

    /** The only static member of that type, whatever its name in this version. */
    private static Object staticMember(Class<?> owner, Class<?> type) throws Exception {
        for (Field field : owner.getDeclaredFields()) {
            if (java.lang.reflect.Modifier.isStatic(field.getModifiers()) && type.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                return field.get(null);
            }
        }
        throw new IllegalStateException("no static " + type.getSimpleName() + " in " + owner.getName());
    }

    /** Keys that brokers accept dynamically only, and that KafkaConfig itself does not define. */
    private static ObjectNode dynamicOnly() throws Exception {
        Map<String, ConfigDef.ConfigKey> missing = new TreeMap<>(DynamicConfig.Broker.configKeys());
        missing.keySet().removeAll(brokerDefinitions().configKeys().keySet());
        return definitions(missing);
    }

    private static ObjectNode definitions(Map<String, ConfigDef.ConfigKey> keys) throws Exception {
        ObjectNode out = JSON.createObjectNode();
        for (ConfigDef.ConfigKey key : new TreeMap<>(keys).values()) {
            ObjectNode fact = out.putObject(key.name);
            fact.put("type", key.type.name());
            if (key.hasDefault())
                fact.put("default", ConfigDef.convertToString(key.defaultValue, key.type));
            else
                fact.put("required", true);
            if (key.internalConfig)
                fact.put("internal", true);
            if (key.validator != null)
                validator(fact, key.validator);
        }
        return out;
    }

    private static void validator(ObjectNode fact, ConfigDef.Validator validator) throws Exception {
        String name = validator.getClass().getSimpleName();
        switch (name) {
            case "Range" -> {
                number(fact, "min", read(validator, "min"));
                number(fact, "max", read(validator, "max"));
            }
            case "ValidString" -> fact.set("in", names((Collection<?>) read(validator, "validStrings"), false));
            case "CaseInsensitiveValidString" ->
                fact.set("inIgnoringCase", names((Collection<?>) read(validator, "validStrings")));
            case "ValidList" -> {
                ValidListFacts.write(fact, validator);
            }
            case "CompositeValidator" -> {
                for (Object part : (List<?>) read(validator, "validators"))
                    validator(fact, (ConfigDef.Validator) part);
            }
            case "NonNullValidator" -> fact.put("notNull", true);
            case "NonEmptyString", "NonEmptyStringWithoutControlChars" -> fact.put("notEmpty", true);
            default -> fact.put("rule", ruleName(validator));
        }
    }

    /** A rule that only code expresses: the class that owns it, or its short form, such as "[1,...,9] or -1". */
    private static String ruleName(ConfigDef.Validator validator) {
        if (validator.getClass().getSimpleName().equals("LambdaValidator"))
            return validator.toString();
        String name = validator.getClass().getName();
        return name.substring(name.lastIndexOf('.') + 1).replace('$', '.');
    }

    static Object read(Object owner, String field) throws Exception {
        Field declared = owner.getClass().getDeclaredField(field);
        declared.setAccessible(true);
        return declared.get(owner);
    }

    private static void number(ObjectNode fact, String name, Object value) {
        if (value instanceof Double || value instanceof Float)
            fact.put(name, ((Number) value).doubleValue());
        else if (value != null)
            fact.put(name, ((Number) value).longValue());
    }

    static ArrayNode names(Collection<?> values) {
        return names(values, true);
    }

    private static ArrayNode names(Collection<?> values, boolean sorted) {
        ArrayNode out = JSON.createArrayNode();
        Collection<?> ordered = sorted ? new TreeSet<>(values) : values;
        for (Object value : ordered)
            out.add(String.valueOf(value));
        return out;
    }

    private static ObjectNode topicSynonyms() {
        ObjectNode out = JSON.createObjectNode();
        new TreeMap<>(ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS).forEach((name, synonyms) -> {
            ArrayNode list = out.putArray(name);
            for (ConfigSynonym synonym : synonyms) {
                ObjectNode entry = list.addObject();
                entry.put("name", synonym.name());
                long factor = Long.parseLong(synonym.converter().apply("1"));
                if (factor != 1)
                    entry.put("factor", factor);
            }
        });
        return out;
    }

    private static ObjectNode groupSynonyms() throws Exception {
        ObjectNode out = JSON.createObjectNode();
        Method synonym = GroupConfig.class.getMethod("brokerSynonym", String.class);
        for (String name : new TreeSet<>(groupDefinitions().configKeys().keySet())) {
            java.util.Optional<?> broker = (java.util.Optional<?>) synonym.invoke(null, name);
            broker.ifPresent(value -> out.put(name, String.valueOf(value)));
        }
        return out;
    }

    private static final class ValidListFacts {
        static void write(ObjectNode fact, ConfigDef.Validator validator) throws Exception {
            Object allowed = read(validator, "validString");
            Collection<?> names = allowed == null ? List.of() : (Collection<?>) read(allowed, "validStrings");
            fact.put("distinct", true);
            ArrayNode list = names(names, false);
            if (!list.isEmpty())
                fact.set("in", list);
            if (!(Boolean) read(validator, "isEmptyAllowed"))
                fact.put("notEmpty", true);
            if (!(Boolean) read(validator, "isNullAllowed"))
                fact.put("notNull", true);
        }
    }
}
