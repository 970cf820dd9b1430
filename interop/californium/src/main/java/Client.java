import java.util.Arrays;
import java.util.HashSet;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapObserveRelation;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.Option;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.option.OpaqueOptionDefinition;
import org.eclipse.californium.core.coap.option.OptionDefinition;
import org.eclipse.californium.core.network.CoapEndpoint;

/** What a client asks of a server with the resources of ../README.md. */
class Client {
    static final OptionDefinition CRITICAL = new OpaqueOptionDefinition(65001, "Unknown", false);
    static final byte[] MEDIUM = Resources.digits(10_000);

    final CoapEndpoint endpoint;
    final String base;

    Client(CoapEndpoint endpoint, String base) {
        this.endpoint = endpoint;
        this.base = base;
    }

    CoapClient at(String path) {
        CoapClient client = new CoapClient(base + path);
        client.setEndpoint(endpoint);
        client.setTimeout(30000L);
        return client;
    }

    static void check(boolean right, Object what) {
        if (!right) {
            System.out.println("wrong: " + what);
            System.exit(1);
        }
    }

    CoapResponse ask(Request request, String path, ResponseCode code, byte[] body) throws Exception {
        CoapResponse response = at(path).advanced(request);
        String what = request.getCode() + " " + path;
        check(response != null, what + ": no response");
        check(response.getCode() == code, what + ": " + response.getCode());
        check(body == null || Arrays.equals(body, response.getPayload()), what + ": another body");
        return response;
    }

    CoapResponse ask(Code method, String path, byte[] payload, ResponseCode code, byte[] body) throws Exception {
        Request request = new Request(method);
        if (payload != null) request.setPayload(payload);
        return ask(request, path, code, body);
    }

    void observe(String path, Predicate<String> right) throws Exception {
        Queue<String> states = new ConcurrentLinkedQueue<>();
        CountDownLatch seen = new CountDownLatch(3);
        CoapObserveRelation relation = at(path).observe(new CoapHandler() {
            @Override public void onLoad(CoapResponse response) {
                states.add(response.getResponseText());
                seen.countDown();
            }
            @Override public void onError() {
                check(false, "observing " + path);
            }
        });
        check(seen.await(20, TimeUnit.SECONDS), "three states of " + path);
        relation.proactiveCancel();
        Set<String> different = new HashSet<>(states);
        check(different.size() > 1 && states.stream().allMatch(right), "states of " + path);
    }

    /** Each POST is counted once, however often its datagrams come. */
    void count(int times) throws Exception {
        int first = 0;
        for (int n = 0; n < times; n++) {
            CoapResponse response = ask(Code.POST, "/count", null, ResponseCode.CHANGED, null);
            int count = Integer.parseInt(response.getResponseText());
            if (n == 0) first = count;
            check(count == first + n, "POST " + n + " was counted as " + count);
        }
    }

    void all() throws Exception {
        ask(Code.GET, "/test", null, ResponseCode.CONTENT, Resources.DIGITS);
        String links = ask(Code.GET, "/.well-known/core", null, ResponseCode.CONTENT, null).getResponseText();
        check(links.contains("</time>"), links);
        byte[] hi = "hi".getBytes();
        ask(Code.PUT, "/echo", hi, ResponseCode.CHANGED, hi);
        ask(Code.POST, "/echo", hi, ResponseCode.CHANGED, hi);
        ask(Code.DELETE, "/echo", null, ResponseCode.DELETED, null);
        ask(Code.GET, "/separate", null, ResponseCode.CONTENT, null);
        ask(Code.GET, "/large", null, ResponseCode.CONTENT, Resources.LARGE);
        ask(Code.PUT, "/echo", Resources.LARGE, ResponseCode.CHANGED, Resources.LARGE);
        ask(Code.GET, "/missing", null, ResponseCode.NOT_FOUND, null);
        ask(Code.DELETE, "/test", null, ResponseCode.METHOD_NOT_ALLOWED, null);
        byte[] long_ = Resources.digits(3 << 20);
        ask(Code.PUT, "/echo", long_, ResponseCode.REQUEST_ENTITY_TOO_LARGE, null);
        Request unknown = Request.newGet();
        unknown.getOptions().addOption(new Option(CRITICAL, new byte[] {'x'}));
        ask(unknown, "/test", ResponseCode.BAD_OPTION, null);
        Request hops = Request.newGet();
        hops.getOptions().addOption(new Option(new OpaqueOptionDefinition(16, "Hop-Limit"), new byte[] {3}));
        ask(hops, "/test", ResponseCode.CONTENT, Resources.DIGITS);
        Request silent = Request.newGet();
        silent.setType(Type.NON);
        silent.getOptions().setNoResponse(2);
        silent.setURI(base + "/test");
        silent.send(endpoint);
        check(silent.waitForResponse(500) == null, "it wanted no response");
        observe("/time", state -> state.chars().allMatch(Character::isDigit));
        observe("/times", state -> state.equals(state.substring(0, 1).repeat(3000)));
    }

    void lossy() throws Exception {
        count(12);
        for (int n = 0; n < 5; n++) ask(Code.GET, "/test", null, ResponseCode.CONTENT, Resources.DIGITS);
        ask(Code.PUT, "/echo", MEDIUM, ResponseCode.CHANGED, MEDIUM);
        ask(Code.GET, "/separate", null, ResponseCode.CONTENT, null);
    }

    void run(String what) throws Exception {
        switch (what) {
            case "all" -> all();
            case "lossy" -> lossy();
            case "count" -> count(10);
            default -> check(false, "there is no " + what);
        }
        // What cancels an observation leaves before the socket closes.
        Thread.sleep(200);
        System.out.println("all answered");
        System.exit(0);
    }
}
