// Measures the speed of Kafka's own codec on one message: the Java half of compat/benches/codec. Commands are lines:
//   load MESSAGE VERSION HEX...  -> "ready RUNTIME", after the bytes were decoded and encoded unchanged
//   decode LOOPS                 -> the nanoseconds for so many calls with each HEX
//   encode LOOPS                 -> the same for calls with the message of the last HEX
// Each JVM measures one message, so that the JIT compiler sees one class at each call, as in a broker's hot loop.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.VoteRequestData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

public final class CodecSpeed {
    private interface Reader {
        Message read(Readable readable, short version);
    }

    /** Keeps results, so that no call can be optimised away. */
    private static volatile Object sink;

    private final Reader reader;
    private final short version;
    private final byte[][] payloads;
    private Message message;

    private CodecSpeed(String name, short version, byte[][] payloads) {
        this.reader = reader(name);
        this.version = version;
        this.payloads = payloads;
        for (byte[] data : payloads) {
            message = decode(data);
            if (!Arrays.equals(bytes(encode()), data)) {
                throw new IllegalStateException(name + ": what was decoded encodes to other bytes");
            }
        }
    }

    private static Reader reader(String name) {
        return switch (name) {
            case "MetadataResponse" -> MetadataResponseData::new;
            case "FetchResponse" -> FetchResponseData::new;
            case "FetchRequest" -> FetchRequestData::new;
            case "VoteRequest" -> VoteRequestData::new;
            case "BrokerHeartbeatRequest" -> BrokerHeartbeatRequestData::new;
            case "PartitionRecord" -> PartitionRecord::new;
            case "BrokerRegistrationRequest" -> BrokerRegistrationRequestData::new;
            default -> throw new IllegalArgumentException(name);
        };
    }

    private Message decode(byte[] data) {
        return reader.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
    }

    private ByteBuffer encode() {
        return MessageUtil.toByteBufferAccessor(message, version).buffer();
    }

    private long timeDecode(int loops) {
        long began = System.nanoTime();
        for (int i = 0; i < loops; i++) {
            for (byte[] data : payloads) {
                sink = decode(data);
            }
        }
        return System.nanoTime() - began;
    }

    private long timeEncode(int loops) {
        long began = System.nanoTime();
        for (int i = 0; i < loops; i++) {
            sink = encode();
        }
        return System.nanoTime() - began;
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] copied = new byte[buffer.remaining()];
        buffer.duplicate().get(copied);
        return copied;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        CodecSpeed codec = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "load" -> {
                    byte[][] payloads = new byte[words.length - 3][];
                    for (int i = 0; i < payloads.length; i++) {
                        payloads[i] = HexFormat.of().parseHex(words[i + 3]);
                    }
                    codec = new CodecSpeed(words[1], Short.parseShort(words[2]), payloads);
                    System.out.println("ready " + Runtime.version());
                }
                case "decode" -> System.out.println(codec.timeDecode(Integer.parseInt(words[1])));
                case "encode" -> System.out.println(codec.timeEncode(Integer.parseInt(words[1])));
                default -> throw new IllegalArgumentException(line);
            }
        }
    }
}
