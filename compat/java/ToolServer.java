import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs the main methods of Kafka's command-line tools in one JVM, so that not every tool call starts a JVM.
 *
 * <p>A request is one line on standard input: URL-encoded words separated by spaces, the first being the class path, the
 * second the main class, the others its arguments. The answer on standard output is a line "EXIT_CODE OUT_BYTES ERR_BYTES"
 * followed by what the tool wrote to its standard output and to its standard error. Each class path has its own class
 * loader, kept for the next request, so tools of several Kafka versions live side by side.
 *
 * <p>Kafka's tools exit through Kafka's own Exit class, which throws an exception here. A tool that calls System.exit
 * itself ends this JVM: the reader of the answer sees the end of the stream, and the tool's standard error is on that of
 * this process.
 */
public final class ToolServer {
    /** Thrown when a tool calls Exit. */
    private static final class ExitCalled extends Error {
        private static final long serialVersionUID = 1L;

        ExitCalled(int exitCode) {
            super("exit " + exitCode, null, false, false);
        }
    }

    /**
     * A stream whose target changes with every request. System.out and System.err are set once, because Scala's Console and
     * the loggers keep the stream they see first.
     */
    private static final class Redirected extends OutputStream {
        private ByteArrayOutputStream target = new ByteArrayOutputStream();
        private boolean open;

        @Override
        public synchronized void write(int b) {
            if (open)
                target.write(b);
        }

        @Override
        public synchronized void write(byte[] bytes, int offset, int length) {
            if (open)
                target.write(bytes, offset, length);
        }

        synchronized void open() {
            open = true;
        }

        /** Discards everything from now on: a process that has exited writes nothing. */
        synchronized void shut(PrintStream writer) {
            writer.flush();
            open = false;
        }

        synchronized byte[] take() {
            byte[] taken = target.toByteArray();
            target = new ByteArrayOutputStream();
            return taken;
        }
    }

    /** Ignores close: a tool may close it at its end, but the next tool prints to it too. */
    private static final class Unclosable extends PrintStream {
        Unclosable(OutputStream target) {
            super(target, true, StandardCharsets.UTF_8);
        }

        @Override
        public void close() {
            flush();
        }
    }

    private final Map<String, ClassLoader> loaders = new HashMap<>();
    private final Redirected out = new Redirected();
    private final Redirected err = new Redirected();
    private volatile Integer firstExitCode;

    private ToolServer() {
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = System.out;
        PrintStream lastWords = System.err;
        ToolServer server = new ToolServer();
        System.setOut(new Unclosable(server.out));
        System.setErr(new Unclosable(server.err));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> lastWords.writeBytes(server.err.take())));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            server.out.open();
            server.err.open();
            int exitCode = server.run(line.split(" "));
            server.closeStreams();
            byte[] outBytes = server.out.take();
            byte[] errBytes = server.err.take();
            String summary = exitCode + " " + outBytes.length + " " + errBytes.length + "\n";
            answers.write(summary.getBytes(StandardCharsets.US_ASCII));
            answers.write(outBytes);
            answers.write(errBytes);
            answers.flush();
        }
        System.exit(0);
    }

    private void closeStreams() {
        out.shut(System.out);
        err.shut(System.err);
    }

    private int run(String[] words) {
        String[] request = Arrays.stream(words)
            .map(word -> URLDecoder.decode(word, StandardCharsets.UTF_8))
            .toArray(String[]::new);
        firstExitCode = null;
        try {
            ClassLoader loader = loader(request[0]);
            Thread.currentThread().setContextClassLoader(loader);
            Method main = loader.loadClass(request[1]).getMethod("main", String[].class);
            main.invoke(null, (Object) Arrays.copyOfRange(request, 2, request.length));
        } catch (InvocationTargetException failure) {
            if (firstExitCode == null) {
                failure.getCause().printStackTrace();
                return 1;
            }
        } catch (ReflectiveOperationException | MalformedURLException failure) {
            failure.printStackTrace();
            return 1;
        }
        return firstExitCode == null ? 0 : firstExitCode;
    }

    private ClassLoader loader(String classPath) throws ReflectiveOperationException, MalformedURLException {
        ClassLoader known = loaders.get(classPath);
        if (known != null)
            return known;
        String[] entries = classPath.split(":");
        URL[] urls = new URL[entries.length];
        for (int i = 0; i < entries.length; i++)
            urls[i] = Path.of(entries[i]).toUri().toURL();
        ClassLoader loader = new URLClassLoader(urls, ClassLoader.getPlatformClassLoader());
        throwOnExit(loader);
        loaders.put(classPath, loader);
        return loader;
    }

    private static Class<?> exitClass(ClassLoader loader) throws ClassNotFoundException {
        try {
            return loader.loadClass("org.apache.kafka.common.utils.internals.Exit"); // since 4.4
        } catch (ClassNotFoundException beforeThat) {
            return loader.loadClass("org.apache.kafka.common.utils.Exit");
        }
    }

    private void throwOnExit(ClassLoader loader) throws ReflectiveOperationException {
        Class<?> exit = exitClass(loader);
        Class<?> procedure = loader.loadClass(exit.getName() + "$Procedure");
        Object thrower = Proxy.newProxyInstance(loader, new Class<?>[] {procedure}, (proxy, method, args) -> {
            int exitCode = (Integer) args[0];
            if (firstExitCode == null) // a tool that catches the exception may exit a second time
                firstExitCode = exitCode;
            closeStreams();
            throw new ExitCalled(exitCode);
        });
        exit.getMethod("setExitProcedure", procedure).invoke(null, thrower);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, thrower);
    }
}
