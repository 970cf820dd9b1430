import java.net.InetSocketAddress;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.coap.OptionSet;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.core.server.resources.CoapExchange;

/** The resources of the OSCORE interop test specification, which check what it says of their requests. */
class OscoreServer {
    static final int TEXT = MediaTypeRegistry.TEXT_PLAIN;

    /**
     * It is served with OSCORE only. Californium's OSCoreResource removes the option by which it tells that, so that its
     * second notification is a 4.01.
     */
    static class Protected extends CoapResource {
        Protected(String name) {
            super(name);
        }

        @Override public void handleRequest(Exchange exchange) {
            if (exchange.getCryptographicContextID() != null) super.handleRequest(exchange);
            else exchange.sendResponse(new Response(ResponseCode.UNAUTHORIZED));
        }
    }

    /** Answers a request whose options are right. */
    static void answer(CoapExchange exchange, Predicate<OptionSet> right, ResponseCode code, String text) {
        if (!right.test(exchange.getRequestOptions())) exchange.respond(ResponseCode.BAD_REQUEST);
        else if (text == null) exchange.respond(code);
        else exchange.respond(code, text, TEXT);
    }

    static class Hello extends Protected {
        final Predicate<OptionSet> right;
        final Consumer<CoapExchange> more;

        Hello(String name, Predicate<OptionSet> right, Consumer<CoapExchange> more) {
            super(name);
            this.right = right;
            this.more = more;
        }

        @Override public void handleGET(CoapExchange exchange) {
            more.accept(exchange);
            answer(exchange, right, ResponseCode.CONTENT, "Hello World!");
        }
    }

    /** Begins with its first state whenever someone begins to observe it; after the second it may end with an error. */
    static class Observed extends Protected {
        final int period, states;
        int state;

        Observed(String name, int period, int states) {
            super(name);
            this.period = period;
            this.states = states;
            setObservable(true);
            setObserveType(Type.CON);
        }

        @Override public synchronized void handleGET(CoapExchange exchange) {
            if (state == 0 && exchange.getRequestOptions().hasObserve()) {
                Thread thread = new Thread(this::run);
                thread.setDaemon(true);
                thread.start();
            }
            switch (state) {
                case 0 -> exchange.respond(ResponseCode.CONTENT, "one", TEXT);
                case 1 -> exchange.respond(ResponseCode.CONTENT, "two", TEXT);
                default -> exchange.respond(ResponseCode.INTERNAL_SERVER_ERROR, "Terminate Observe");
            }
        }

        private synchronized void show(int next) {
            state = next;
        }

        private void run() {
            try {
                for (int next = 1; next < states; next++) {
                    Thread.sleep(period);
                    show(next);
                    changed();
                }
                Thread.sleep(period);
            } catch (InterruptedException ended) {
                return;
            }
            show(0);
        }
    }

    static void serve(String host, int port, int period, int unaware) {
        OscoreContexts.Named contexts = new OscoreContexts.Named();
        for (byte[] idContext : new byte[][] {null, OscoreContexts.ID_CONTEXT})
            contexts.addContext(OscoreContexts.context(OscoreContexts.SERVER, OscoreContexts.CLIENT, idContext));
        CoapServer server = new CoapServer(Matrix.configuration());
        server.addEndpoint(OscoreContexts.endpoint(Interop.endpoint(), contexts)
            .setInetSocketAddress(new InetSocketAddress(host, port)).build());
        // Does not know OSCORE (test 16).
        server.addEndpoint(Interop.endpoint().setInetSocketAddress(new InetSocketAddress(host, unaware)).build());
        CoapResource hello = new CoapResource("hello"), oscore = new CoapResource("oscore");
        hello.add(
            new CoapResource("coap") {
                @Override public void handleGET(CoapExchange exchange) {
                    answer(exchange, options -> true, ResponseCode.CONTENT, "Hello World!");
                }
            },
            new Hello("1", options -> options.getUriQueryString().isEmpty(), exchange -> { }),
            new Hello("2", options -> options.getUriQueryString().equals("first=1"),
                exchange -> exchange.setETag(new byte[] {0x2b})),
            new Hello("3", options -> options.isAccept(TEXT), exchange -> exchange.setMaxAge(5)),
            new Protected("6") {
                @Override public void handlePOST(CoapExchange exchange) {
                    answer(exchange, options -> options.isContentFormat(TEXT), ResponseCode.CHANGED,
                        exchange.getRequestText());
                }
            },
            new Protected("7") {
                @Override public void handlePUT(CoapExchange exchange) {
                    OptionSet options = exchange.getRequestOptions();
                    boolean refused = options.hasIfNoneMatch()
                        || options.getIfMatchCount() > 0 && !options.isIfMatch(new byte[] {0x7b});
                    answer(exchange, each -> each.isContentFormat(TEXT),
                        refused ? ResponseCode.PRECONDITION_FAILED : ResponseCode.CHANGED, null);
                }
            });
        oscore.add(hello, new Observed("observe1", period, 3), new Observed("observe2", period, 2),
            new Protected("test") {
                @Override public void handleDELETE(CoapExchange exchange) {
                    exchange.respond(ResponseCode.DELETED);
                }
            });
        server.add(oscore);
        server.start();
        System.out.println("ready");
    }
}
