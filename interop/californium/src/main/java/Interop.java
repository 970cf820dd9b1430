import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.eclipse.californium.core.*;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/** The resources of `ebbtide serve` by Californium, or a client: Interop server|client PORT */
public class Interop {
    static final String DIGITS = "0123456789".repeat(6);

    static byte[] large() {
        byte[] body = new byte[1 << 20];
        for (int n = 0; n < body.length; n++) body[n] = (byte) ('0' + n % 10);
        return body;
    }

    static Configuration configuration() {
        CoapConfig.register();
        UdpConfig.register();
        return Configuration.createStandardWithoutFile()
            .set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 2 << 20)
            .set(CoapConfig.PREFERRED_BLOCK_SIZE, 1024)
            .set(CoapConfig.MAX_MESSAGE_SIZE, 1024);
    }

    static class Text extends CoapResource {
        final byte[] body;
        Text(String name, byte[] body) { super(name); this.body = body; }
        @Override public void handleGET(CoapExchange exchange) {
            exchange.respond(ResponseCode.CONTENT, body);
        }
    }

    static class Echo extends CoapResource {
        Echo() { super("echo"); }
        @Override public void handlePUT(CoapExchange exchange) {
            exchange.respond(ResponseCode.CHANGED, exchange.getRequestPayload());
        }
        @Override public void handlePOST(CoapExchange exchange) { handlePUT(exchange); }
        @Override public void handleDELETE(CoapExchange exchange) {
            exchange.respond(ResponseCode.DELETED);
        }
    }

    static class Separate extends CoapResource {
        Separate() { super("separate"); }
        @Override public void handleGET(CoapExchange exchange) {
            exchange.accept();
            try { Thread.sleep(2000); } catch (InterruptedException e) { return; }
            exchange.respond("that took two seconds");
        }
    }

    static class Time extends CoapResource {
        int number = 0;
        Time() {
            super("time");
            setObservable(true);
            getAttributes().setObservable();
            new Timer(true).schedule(new TimerTask() {
                @Override public void run() { number++; changed(); }
            }, 500, 500);
        }
        @Override public void handleGET(CoapExchange exchange) { exchange.respond("" + number); }
    }

    static void serve(int port) {
        Configuration configuration = configuration();
        CoapServer server = new CoapServer(configuration);
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(configuration)
            .setInetSocketAddress(new InetSocketAddress("127.0.0.1", port)).build());
        server.add(new Text("test", DIGITS.getBytes()), new Text("large", large()), new Echo(),
            new Separate(), new Time());
        server.start();
        System.out.println("ready");
    }

    static void check(boolean right, String what) {
        if (!right) { System.out.println("wrong: " + what); System.exit(1); }
    }

    static void ask(int port) throws Exception {
        CoapEndpoint endpoint = CoapEndpoint.builder().setConfiguration(configuration()).build();
        endpoint.start();
        String base = "coap://127.0.0.1:" + port;
        java.util.function.Function<String, CoapClient> at = path -> {
            CoapClient client = new CoapClient(base + path);
            client.setEndpoint(endpoint);
            client.setTimeout(20000L);
            return client;
        };
        check(DIGITS.equals(at.apply("/test").get().getResponseText()), "GET");
        check(Arrays.equals(large(), at.apply("/large").get().getPayload()), "Block2");
        check("hi".equals(at.apply("/echo").put("hi", 0).getResponseText()), "PUT");
        check("hi".equals(at.apply("/echo").post("hi", 0).getResponseText()), "POST");
        check(Arrays.equals(large(), at.apply("/echo").put(large(), 0).getPayload()), "Block1");
        check(at.apply("/separate").get().isSuccess(), "separate");
        check(at.apply("/missing").get().getCode() == ResponseCode.NOT_FOUND, "4.04");
        check(at.apply("/test").delete().getCode() == ResponseCode.METHOD_NOT_ALLOWED, "4.05");
        CountDownLatch seen = new CountDownLatch(3);
        at.apply("/time").observe(new CoapHandler() {
            @Override public void onLoad(CoapResponse response) { seen.countDown(); }
            @Override public void onError() { check(false, "observe"); }
        });
        check(seen.await(20, TimeUnit.SECONDS), "three states");
        System.out.println("all answered");
        System.exit(0);
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[1]);
        if (args[0].equals("server")) serve(port); else ask(port);
    }
}
