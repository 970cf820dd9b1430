import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.eclipse.californium.core.*;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.OptionSet;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.*;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.TcpConfig;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.elements.util.Bytes;
import org.eclipse.californium.scandium.DTLSConnector;

/** The adapter of Californium for the interoperability matrix, which ../README.md describes, with Version.java for one release. */
public class Matrix {
    static Configuration configuration() {
        CoapConfig.register();
        UdpConfig.register();
        TcpConfig.register();
        return Configuration.createStandardWithoutFile()
            .set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 2 << 20)
            .set(CoapConfig.PREFERRED_BLOCK_SIZE, 1024)
            .set(CoapConfig.MAX_MESSAGE_SIZE, 1024)
            // A loopback interface answers soon, and a relay that loses a tenth of all needs more
            // patience.
            .set(CoapConfig.ACK_TIMEOUT, 500, TimeUnit.MILLISECONDS)
            .set(CoapConfig.MAX_RETRANSMIT, 8);
    }

    static class Text extends CoapResource {
        final byte[] body;

        Text(String name, byte[] body) {
            super(name);
            this.body = body;
        }

        @Override public void handleGET(CoapExchange exchange) {
            exchange.respond(ResponseCode.CONTENT, body);
        }
    }

    static class Tagged extends CoapResource {
        static final byte[] TAG = {0x2a};

        Tagged() {
            super("tagged");
        }

        @Override public void handleGET(CoapExchange exchange) {
            OptionSet options = exchange.getRequestOptions();
            if (options.hasAccept() && options.getAccept() != 0) {
                exchange.respond(ResponseCode.NOT_ACCEPTABLE);
                return;
            }
            exchange.setETag(TAG);
            if (options.containsETag(TAG)) exchange.respond(ResponseCode.VALID);
            else exchange.respond("tagged");
        }

        @Override public void handlePUT(CoapExchange exchange) {
            OptionSet options = exchange.getRequestOptions();
            boolean refused = options.hasIfNoneMatch() || options.getIfMatchCount() > 0 && !options.isIfMatch(TAG);
            exchange.respond(refused ? ResponseCode.PRECONDITION_FAILED : ResponseCode.CHANGED);
        }
    }

    static void serve(int port, String host, String scheme) {
        CoapServer server = new CoapServer(configuration());
        server.addEndpoint(Version.endpoint(new InetSocketAddress(host, port), scheme, true));
        server.add(new Text("test", Resources.DIGITS), new Text("large", Resources.LARGE),
            new Text("medium", Resources.digits(10_000)), new Text("a b", "spaced".getBytes()),
            new Resources.Separate(), new Resources.Count(),
            new Resources.Time("time", 250, n -> "" + n),
            new Resources.Time("times", 500, n -> ("" + n % 10).repeat(3000)),
            new CoapResource("query") {
                @Override public void handleGET(CoapExchange exchange) {
                    exchange.respond(exchange.getRequestOptions().getUriQueryString());
                }
            },
            new Tagged(),
            new CoapResource("fresh") {
                @Override public void handleGET(CoapExchange exchange) {
                    if (exchange.getRequestOptions().asSortedList().stream().anyMatch(option -> option.getNumber() == 252)) {
                        exchange.respond("fresh");
                        return;
                    }
                    Response response = new Response(ResponseCode.UNAUTHORIZED);
                    response.getOptions().addOption(Version.option(252, "echo-me!".getBytes()));
                    exchange.respond(response);
                }
            },
            new CoapResource("length") {
                @Override public void handlePUT(CoapExchange exchange) {
                    exchange.respond(ResponseCode.CHANGED, "" + exchange.getRequestPayload().length);
                }
            },
            new Resources.Echo() {
                @Override public void handleFETCH(CoapExchange exchange) {
                    exchange.respond(ResponseCode.CONTENT, exchange.getRequestPayload());
                }

                @Override public void handlePATCH(CoapExchange exchange) {
                    handlePUT(exchange);
                }

                @Override public void handleIPATCH(CoapExchange exchange) {
                    handlePUT(exchange);
                }
            });
        server.start();
        System.out.println("ready");
    }

    static String hexadecimal(byte[] bytes) {
        return bytes == null || bytes.length == 0 ? "-" : HexFormat.of().formatHex(bytes);
    }

    static String shown(CoapResponse response) {
        String options = response.advanced().getOptions().asSortedList().stream()
            .map(option -> option.getNumber() + ":" + hexadecimal(Version.value(option)).replace("-", ""))
            .collect(Collectors.joining(","));
        return response.getCode() + " " + (options.isEmpty() ? "-" : options) + " "
            + hexadecimal(response.getPayload());
    }

    static String ask(CoapEndpoint endpoint, String base, String[] words) throws Exception {
        CoapClient client = new CoapClient(base);
        client.setEndpoint(endpoint);
        if (words[0].equals("PING")) return client.ping(4000L) ? "rst - -" : "error no answer";
        Request request = new Request(Code.valueOf(words[0]));
        request.setURI(base);
        if (Version.OSCORE) request.getOptions().setOscore(Bytes.EMPTY);
        String[] parts = words[1].split("\\?", 2);
        for (String part : parts[0].substring(1).split("/"))
            request.getOptions().addUriPath(URLDecoder.decode(part, StandardCharsets.UTF_8));
        if (parts.length > 1)
            for (String part : parts[1].split("&")) request.getOptions().addUriQuery(part);
        double wait = 8;
        int observe = 0;
        for (int n = 2; n < words.length; n++) {
            String[] word = words[n].split("=", 2);
            switch (word[0]) {
                case "non" -> request.setType(Type.NON);
                case "payload" -> request.setPayload(HexFormat.of().parseHex(word[1]));
                case "digits" -> request.setPayload(Resources.digits(Integer.parseInt(word[1])));
                case "wait" -> wait = Double.parseDouble(word[1]);
                case "observe" -> observe = Integer.parseInt(word[1]);
                case "opt" -> {
                    String[] option = word[1].split(":", 2);
                    int number = Integer.parseInt(option[0]);
                    byte[] value = HexFormat.of().parseHex(option[1]);
                    if (number == 1) request.getOptions().addIfMatch(value);
                    else if (number == 4) request.getOptions().addETag(value);
                    else if (number == 5) request.getOptions().setIfNoneMatch(true);
                    else if (number == 17) request.getOptions().setAccept(value.length == 0 ? 0 : value[0]);
                    else if (number == 258) request.getOptions().setNoResponse(value[0]);
                    else if (number == 35) request.getOptions().setProxyUri(new String(value));
                    else if (number == 39) request.getOptions().setProxyScheme(new String(value));
                    else request.getOptions().addOption(Version.option(number, value));
                }
                case "block" -> {
                    int szx = Integer.numberOfTrailingZeros(Integer.parseInt(word[1])) - 4;
                    if (request.getCode() == Code.GET) request.getOptions().setBlock2(szx, false, 0);
                    else request.getOptions().setBlock1(szx, false, 0);
                }
                default -> { }
            }
        }
        long milliseconds = (long) (wait * 1000);
        if (observe == 0) {
            request.send(endpoint);
            var response = request.waitForResponse(milliseconds);
            if (response != null) {
                CoapResponse[] held = new CoapResponse[1];
                held[0] = new Held(response).response;
                return shown(held[0]);
            }
            String error = request.isRejected() ? "reset" : request.isTimedOut() ? "gave up"
                : request.getSendError() != null ? request.getSendError().toString() : "no answer";
            request.cancel();
            return "error " + error.replace('\n', ' ');
        }
        StringBuilder states = new StringBuilder();
        CountDownLatch seen = new CountDownLatch(observe);
        request.setObserve();
        CoapObserveRelation relation = client.observe(request, new CoapHandler() {
            @Override public synchronized void onLoad(CoapResponse response) {
                if (seen.getCount() == 0) return;
                states.append(shown(response)).append('\n');
                seen.countDown();
                if (!response.isSuccess()) while (seen.getCount() > 0) seen.countDown();
            }

            @Override public void onError() {
                states.append("error observation failed\n");
                while (seen.getCount() > 0) seen.countDown();
            }
        });
        boolean all = seen.await(milliseconds, TimeUnit.MILLISECONDS);
        relation.proactiveCancel();
        Thread.sleep(200);
        return all ? states.toString().strip() : (states + "error no answer").strip();
    }

    /** A CoapResponse of a response, whose constructor is for subclasses. */
    static class Held {
        final CoapResponse response;

        Held(org.eclipse.californium.core.coap.Response response) {
            this.response = new CoapResponse(response) { };
        }
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("server")) {
            serve(Integer.parseInt(args[1]), args[2], args.length > 3 ? args[3] : "coap");
            return;
        }
        URI uri = new URI(args[1]);
        InetSocketAddress address = new InetSocketAddress(uri.getHost().replaceAll("[\\[\\]]", ""), uri.getPort());
        CoapEndpoint endpoint = Version.endpoint(address, uri.getScheme(), false);
        endpoint.start();
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String answer = "resumes";
            try {
                // The next request begins with an abbreviated handshake.
                if (line.trim().equals("RESUME"))
                    ((DTLSConnector) endpoint.getConnector()).forceResumeAllSessions();
                else answer = ask(endpoint, args[1], line.trim().split(" "));
            } catch (Exception error) {
                answer = "error " + error.toString().replace('\n', ' ');
            }
            System.out.println(answer + "\n.");
        }
        System.exit(0);
    }
}
