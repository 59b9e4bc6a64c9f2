import java.util.stream.Collectors;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/**
 * Kafka's own tables, a line each: "api key name first last last-stable listeners" and, for every version of an
 * API, "header key version request-header response-header"; "error code name retriable".
 */
public class JavaFacts {
    public static void main(String[] arguments) {
        for (ApiKeys api : ApiKeys.values()) {
            if (!api.hasValidVersion()) {
                System.out.printf("dead %d %s%n", api.id, api.name);
                continue;
            }
            String listeners = api.messageType.listeners().stream()
                .map(each -> each.name().toLowerCase()).sorted().collect(Collectors.joining(","));
            System.out.printf("api %d %s %d %d %d %s%n", api.id, api.name, api.messageType.lowestSupportedVersion(),
                api.messageType.highestSupportedVersion(true), api.messageType.highestSupportedVersion(false),
                listeners.isEmpty() ? "-" : listeners);
            for (short version = api.messageType.lowestSupportedVersion();
                    version <= api.messageType.highestSupportedVersion(true); version++) {
                System.out.printf("header %d %d %d %d%n", api.id, version,
                    api.requestHeaderVersion(version), api.responseHeaderVersion(version));
            }
        }
        for (Errors error : Errors.values()) {
            System.out.printf("error %d %s %s%n", error.code(), error.name(),
                error.exception() instanceof RetriableException);
        }
    }
}
