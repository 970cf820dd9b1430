import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Collection;
import java.util.HexFormat;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.leshan.core.endpoint.Protocol;
import org.eclipse.leshan.core.node.LwM2mObjectInstance;
import org.eclipse.leshan.core.node.LwM2mSingleResource;
import org.eclipse.leshan.core.observation.CompositeObservation;
import org.eclipse.leshan.core.observation.Observation;
import org.eclipse.leshan.core.observation.SingleObservation;
import org.eclipse.leshan.core.request.ContentFormat;
import org.eclipse.leshan.core.request.DownlinkRequest;
import org.eclipse.leshan.core.request.ExecuteRequest;
import org.eclipse.leshan.core.request.ObserveRequest;
import org.eclipse.leshan.core.request.ReadRequest;
import org.eclipse.leshan.core.request.WriteRequest;
import org.eclipse.leshan.core.request.exception.SendFailedException;
import org.eclipse.leshan.core.request.exception.UnconnectedPeerException;
import org.eclipse.leshan.core.response.LwM2mResponse;
import org.eclipse.leshan.core.response.ObserveCompositeResponse;
import org.eclipse.leshan.core.response.ObserveResponse;
import org.eclipse.leshan.core.response.ReadResponse;
import org.eclipse.leshan.server.LeshanServer;
import org.eclipse.leshan.server.LeshanServerBuilder;
import org.eclipse.leshan.server.californium.endpoint.CaliforniumServerEndpointsProvider;
import org.eclipse.leshan.server.californium.endpoint.coaps.CoapsServerProtocolProvider;
import org.eclipse.leshan.server.observation.ObservationListener;
import org.eclipse.leshan.server.registration.Registration;
import org.eclipse.leshan.server.registration.RegistrationListener;
import org.eclipse.leshan.server.registration.RegistrationUpdate;
import org.eclipse.leshan.server.security.InMemorySecurityStore;
import org.eclipse.leshan.server.security.SecurityInfo;

/** Leshan's server against examples/lwm2m: reads, observes, and brings firmware by both ways. */
public class LwM2mServer {
    /** How long an operation may take with losses. */
    private static final long PATIENCE_MS = 240_000;

    private static LeshanServer server;
    private static volatile Registration device;

    public static void main(String[] words) {
        try {
            run(words);
        } catch (Exception error) {
            System.out.println("failed: " + error);
            System.exit(1);
        }
    }

    private static void run(String[] words) throws Exception {
        int port = Integer.parseInt(words[0]);
        byte[] image = Files.readAllBytes(Path.of(words[1]));
        String imageUri = words[2];
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(words[3]));
        BlockingQueue<Registration> registered = new ArrayBlockingQueue<>(16);
        AtomicInteger notifications = new AtomicInteger();
        server = server(port);
        server.getRegistrationService().addListener(listener(registered));
        server.getObservationService().addListener(counting(notifications));
        server.start();
        System.out.println("listening");
        device = registered.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
        check("registration", device != null);

        check("read of a resource", "Ebbtide".equals(resource(3, 0, 0)));
        ReadResponse all = send(new ReadRequest(ContentFormat.SENML_JSON, 3, 0));
        check("read of an instance", ((LwM2mObjectInstance) all.getContent()).getResources().containsKey(16));
        ObserveResponse first = send(new ObserveRequest(3303, 0, 5700));
        check("observation", first.isSuccess());

        String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(image));
        int pushed = 0;
        int pulled = 0;
        do {
            System.out.println("pushing");
            check("push", send(new WriteRequest(ContentFormat.OPAQUE, 5, 0, 0, image)).isSuccess());
            update(digest);
            pushed++;
            check("pull", send(new WriteRequest(ContentFormat.TEXT, 5, 0, 1, imageUri)).isSuccess());
            update(digest);
            pulled++;
            System.out.printf("%d pushed, %d pulled, %d notifications%n", pushed, pulled, notifications.get());
        } while (System.nanoTime() < end);
        check("notifications", notifications.get() > 0);
        System.out.println("passed");
        System.exit(0);
    }

    /** Waits for the image, compares its digest, installs it, and waits for the result. */
    private static void update(String digest) throws Exception {
        until("download", () -> "2".equals(resource(5, 0, 3)));
        check("digest", digest.equals(resource(5, 0, 7)));
        check("execution", send(new ExecuteRequest(5, 0, 2)).isSuccess());
        until("update", () -> "1".equals(resource(5, 0, 5)) && "0".equals(resource(5, 0, 3)));
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void until(String what, Condition condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
        while (!condition.holds()) {
            check(what, System.nanoTime() < end);
            Thread.sleep(200);
        }
    }

    private static void check(String what, boolean holds) {
        if (!holds) {
            System.out.println("failed: " + what);
            System.exit(1);
        }
    }

    private static String resource(int object, int instance, int resource) throws Exception {
        ReadResponse read = send(new ReadRequest(object, instance, resource));
        check("read of /" + object + "/" + instance + "/" + resource, read.isSuccess());
        return String.valueOf(((LwM2mSingleResource) read.getContent()).getValue());
    }

    /**
     * Leshan sends to the address of the registration, which a notification from another one changes. A request that is
     * under way when the session moves is lost: the device's answer comes from the new address and is not taken, copies
     * go to the former one, and so does a ClientHello. It is made again.
     */
    private static <T extends LwM2mResponse> T send(DownlinkRequest<T> request) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
        while (true) {
            try {
                // A notification changes the registration, and no listener is told.
                Registration now = server.getRegistrationService().getByEndpoint(device.getEndpoint());
                T response = server.send(now, request, PATIENCE_MS);
                if (response != null) {
                    return response;
                }
            } catch (UnconnectedPeerException | SendFailedException error) {
                System.out.println("again: " + error.getMessage());
            }
            check(request.toString(), System.nanoTime() < end);
            Thread.sleep(1000);
        }
    }

    private static LeshanServer server(int port) throws Exception {
        CaliforniumServerEndpointsProvider.Builder endpoints =
                new CaliforniumServerEndpointsProvider.Builder(new CoapsServerProtocolProvider());
        endpoints.setConfiguration(settings -> settings.set(DtlsConfig.DTLS_CONNECTION_ID_LENGTH, 6));
        endpoints.addEndpoint(new InetSocketAddress("127.0.0.1", port), Protocol.COAPS);
        InMemorySecurityStore keys = new InMemorySecurityStore();
        keys.add(SecurityInfo.newPreSharedKeyInfo("dev-1", "dev-1", "secret".getBytes()));
        LeshanServerBuilder builder = new LeshanServerBuilder();
        builder.setEndpointsProviders(endpoints.build());
        builder.setSecurityStore(keys);
        builder.setUpdateRegistrationOnNotification(true);
        return builder.build();
    }

    private static RegistrationListener listener(BlockingQueue<Registration> registered) {
        return new RegistrationListener() {
            @Override
            public void registered(Registration now, Registration before, Collection<Observation> observations) {
                device = now;
                registered.offer(now);
            }

            @Override
            public void updated(RegistrationUpdate update, Registration now, Registration before) {
                device = now;
            }

            @Override
            public void unregistered(
                    Registration gone, Collection<Observation> observations, boolean expired, Registration next) {
            }
        };
    }

    private static ObservationListener counting(AtomicInteger notifications) {
        return new ObservationListener() {
            @Override
            public void newObservation(Observation observation, Registration from) {
            }

            @Override
            public void cancelled(Observation observation) {
                System.out.println("an observation was cancelled");
            }

            @Override
            public void onResponse(SingleObservation observation, Registration from, ObserveResponse response) {
                notifications.incrementAndGet();
            }

            @Override
            public void onResponse(
                    CompositeObservation observation, Registration from, ObserveCompositeResponse response) {
            }

            @Override
            public void onError(Observation observation, Registration from, Exception error) {
                System.out.println("a notification could not be read: " + error);
            }
        };
    }
}
