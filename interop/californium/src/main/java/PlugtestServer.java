import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Timer;
import java.util.TimerTask;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.server.resources.CoapExchange;

/** The resources that the test descriptions of the ETSI CoAP plugtests name. */
class PlugtestServer {
    static final int TEXT = MediaTypeRegistry.TEXT_PLAIN;
    static final int XML = MediaTypeRegistry.APPLICATION_XML;
    static final int LINKS = MediaTypeRegistry.APPLICATION_LINK_FORMAT;

    /** Twenty lines of 64 bytes. */
    static byte[] lines(IntFunction<Integer> line) {
        StringBuilder lines = new StringBuilder();
        for (int n = 0; n < 20; n++) lines.append(String.format("%63d\n", line.apply(n)));
        return lines.toString().getBytes(StandardCharsets.US_ASCII);
    }

    /** A resource whose GET is answered with its path, or by `get`. */
    static class Plain extends CoapResource {
        final Consumer<CoapExchange> get;

        Plain(String name) {
            this(name, null);
        }

        Plain(String name, Consumer<CoapExchange> get) {
            super(name);
            this.get = get;
        }

        Plain with(CoapResource child) {
            add(child);
            return this;
        }

        Plain link(String types, String face) {
            for (String type : types.split(" ")) getAttributes().addResourceType(type);
            getAttributes().addInterfaceDescription(face);
            return this;
        }

        Plain sized(int size) {
            getAttributes().setMaximumSizeEstimate(size);
            return this;
        }

        Plain format(int format) {
            getAttributes().addContentType(format);
            return this;
        }

        @Override public void handleGET(CoapExchange exchange) {
            if (get != null) get.accept(exchange);
            else exchange.respond(ResponseCode.CONTENT, getURI(), TEXT);
        }
    }

    static class Test extends Plain {
        Test() {
            super("test");
        }

        @Override public void handlePOST(CoapExchange exchange) {
            exchange.setLocationPath("/location1/location2/location3");
            exchange.respond(ResponseCode.CREATED);
        }

        @Override public void handlePUT(CoapExchange exchange) {
            exchange.respond(ResponseCode.CHANGED);
        }

        @Override public void handleDELETE(CoapExchange exchange) {
            exchange.respond(ResponseCode.DELETED);
        }
    }

    static void separate(CoapExchange exchange) {
        exchange.accept();
        try {
            Thread.sleep(1000);
        } catch (InterruptedException e) {
            return;
        }
        exchange.respond(ResponseCode.CONTENT, "that took a while", TEXT);
    }

    static void multiFormat(CoapExchange exchange) {
        int accept = exchange.getRequestOptions().getAccept();
        if (accept == XML) exchange.respond(ResponseCode.CONTENT, "<msg>several formats</msg>", XML);
        else if (accept == TEXT || accept == MediaTypeRegistry.UNDEFINED)
            exchange.respond(ResponseCode.CONTENT, "several formats", TEXT);
        else exchange.respond(ResponseCode.NOT_ACCEPTABLE);
    }

    /** TD_COAP_CORE_21 and 22: replaced by who knows its state. */
    static class Validate extends CoapResource {
        int version = 1;
        byte[] body = "the first state".getBytes();

        Validate() {
            super("validate");
        }

        byte[] etag() {
            return ByteBuffer.allocate(4).putInt(version).array();
        }

        @Override public synchronized void handleGET(CoapExchange exchange) {
            boolean known = exchange.getRequestOptions().containsETag(etag());
            Response response = new Response(known ? ResponseCode.VALID : ResponseCode.CONTENT);
            response.getOptions().addETag(etag());
            if (!known) {
                response.setPayload(body);
                response.getOptions().setContentFormat(TEXT);
            }
            exchange.respond(response);
        }

        @Override public synchronized void handlePUT(CoapExchange exchange) {
            // True as well where the request has no If-Match.
            if (!exchange.getRequestOptions().isIfMatch(etag())) {
                exchange.respond(ResponseCode.PRECONDITION_FAILED);
                return;
            }
            version++;
            body = exchange.getRequestPayload();
            exchange.respond(ResponseCode.CHANGED);
        }
    }

    /** TD_COAP_CORE_23: does not exist until somebody creates it. */
    static class Create extends CoapResource {
        boolean exists;

        Create() {
            super("create1");
            setVisible(false);
        }

        @Override public synchronized void handlePUT(CoapExchange exchange) {
            if (exists && exchange.getRequestOptions().hasIfNoneMatch()) {
                exchange.respond(ResponseCode.PRECONDITION_FAILED);
                return;
            }
            exchange.respond(exists ? ResponseCode.CHANGED : ResponseCode.CREATED);
            exists = true;
        }

        @Override public synchronized void handleDELETE(CoapExchange exchange) {
            exists = false;
            exchange.respond(ResponseCode.DELETED);
        }
    }

    /** A body that can be replaced. */
    static class Update extends CoapResource {
        byte[] body;
        int format = TEXT;

        Update(String name, byte[] body) {
            super(name);
            this.body = body;
            getAttributes().setMaximumSizeEstimate(body.length);
        }

        @Override public synchronized void handleGET(CoapExchange exchange) {
            exchange.respond(ResponseCode.CONTENT, body, format);
        }

        @Override public synchronized void handlePUT(CoapExchange exchange) {
            body = exchange.getRequestPayload();
            format = exchange.getRequestOptions().getContentFormat();
            exchange.respond(ResponseCode.CHANGED);
        }
    }

    static class LargeCreate extends CoapResource {
        int created;

        LargeCreate() {
            super("large-create");
        }

        @Override public synchronized void handlePOST(CoapExchange exchange) {
            Update child = new Update("" + ++created, exchange.getRequestPayload());
            add(child);
            exchange.setLocationPath(child.getURI());
            exchange.respond(ResponseCode.CREATED);
        }
    }

    /** What changes by itself, or is changed by PUT until then. */
    static class Changing extends CoapResource {
        final int maxAge;
        byte[] body;
        int format = TEXT;

        Changing(String name, Type type, int period, IntFunction<byte[]> state) {
            super(name);
            body = state.apply(0);
            maxAge = (period + 999) / 1000;
            setObservable(true);
            setObserveType(type);
            getAttributes().setObservable();
            new Timer(true).scheduleAtFixedRate(new TimerTask() {
                int n;

                @Override public void run() {
                    store(state.apply(++n), TEXT);
                    changed();
                }
            }, period, period);
        }

        synchronized void store(byte[] body, int format) {
            this.body = body;
            this.format = format;
        }

        @Override public synchronized void handleGET(CoapExchange exchange) {
            exchange.setMaxAge(maxAge);
            exchange.respond(ResponseCode.CONTENT, body, format);
        }

        @Override public void handlePUT(CoapExchange exchange) {
            int before = format;
            store(exchange.getRequestPayload(), exchange.getRequestOptions().getContentFormat());
            exchange.respond(ResponseCode.CHANGED);
            if (before == format) changed();
            else clearAndNotifyObserveRelations(ResponseCode.NOT_ACCEPTABLE);
        }

        @Override public void handleDELETE(CoapExchange exchange) {
            exchange.respond(ResponseCode.DELETED);
            clearAndNotifyObserveRelations(ResponseCode.NOT_FOUND);
        }
    }

    static void serve(String host, int port, int period) {
        CoapServer server = new CoapServer(Matrix.configuration());
        server.addEndpoint(Interop.endpoint().setInetSocketAddress(new InetSocketAddress(host, port)).build());
        IntFunction<byte[]> small = n -> ("state " + n).getBytes();
        IntFunction<byte[]> large = n -> lines(line -> n);
        Changing[] changing = {
            new Changing("obs", Type.CON, period, small),
            new Changing("obs-non", Type.NON, period, small),
            new Changing("obs-large", Type.CON, period, large),
            new Changing("obs-pumping", Type.CON, period, n -> (n % 2 == 0 ? small : large).apply(n)),
        };
        server.add(changing);
        server.add(new Test(), new Validate(), new Create(), new LargeCreate(),
            new Plain("seg1").with(new Plain("seg2").with(new Plain("seg3"))),
            new Plain("query", exchange -> exchange.respond(ResponseCode.CONTENT,
                "?" + exchange.getRequestOptions().getUriQueryString(), TEXT)),
            new Plain("separate", PlugtestServer::separate),
            new Plain("multi-format", PlugtestServer::multiFormat).format(TEXT).format(XML),
            new CoapResource("location-query") {
                @Override public void handlePOST(CoapExchange exchange) {
                    exchange.setLocationQuery("first=1&second=2");
                    exchange.respond(ResponseCode.CREATED);
                }
            },
            new Plain("link1").link("Type1 Type2", "If1"),
            new Plain("link2").link("Type2 Type3", "If2"),
            new Plain("link3").link("Type1 Type3", "foo"),
            new Plain("path", exchange -> exchange.respond(ResponseCode.CONTENT,
                "</path/sub1>,</path/sub2>,</path/sub3>", LINKS)).format(LINKS)
                .with(new Plain("sub1")).with(new Plain("sub2")).with(new Plain("sub3")),
            new Plain("large", exchange -> exchange.respond(ResponseCode.CONTENT, lines(n -> n), TEXT)).sized(1280),
            new Update("large-update", lines(n -> n)),
            new CoapResource("large-post") {
                @Override public void handlePOST(CoapExchange exchange) {
                    exchange.respond(ResponseCode.CHANGED, exchange.getRequestText().toUpperCase(), TEXT);
                }
            },
            new CoapResource("obs-reset", false) {
                @Override public void handlePOST(CoapExchange exchange) {
                    for (Changing each : changing) each.clearObserveRelations();
                    exchange.respond(ResponseCode.CHANGED);
                }
            });
        server.start();
        System.out.println("ready");
    }
}
