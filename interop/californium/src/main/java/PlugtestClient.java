import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapObserveRelation;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.coap.Token;
import org.eclipse.californium.core.network.CoapEndpoint;

/** The steps of the ETSI CoAP plugtests' test descriptions, as a client of any plugtest server. */
class PlugtestClient extends Client {
    static final int TEXT = MediaTypeRegistry.TEXT_PLAIN;
    static final int LINKS = MediaTypeRegistry.APPLICATION_LINK_FORMAT;
    static final byte[] LARGE = "a line of 32 bytes of an upload\n".repeat(40).getBytes(StandardCharsets.US_ASCII);
    final boolean lossy;

    PlugtestClient(CoapEndpoint endpoint, String base, boolean lossy) {
        super(endpoint, base);
        this.lossy = lossy;
    }

    /** A body of 80 blocks takes its time where 15 % are lost each way. */
    @Override CoapClient at(String path) {
        CoapClient client = super.at(path);
        client.setTimeout(150_000L);
        return client;
    }

    static Request request(Code method, Type type) {
        Request request = new Request(method, type);
        if (method == Code.PUT || method == Code.POST) {
            request.setPayload("TD_COAP");
            request.getOptions().setContentFormat(TEXT);
        }
        return request;
    }

    /** A response of this type, with the request's message ID if it is in an acknowledgement. */
    Response ask(Request request, String path, Type type, ResponseCode... codes) throws Exception {
        CoapResponse got = at(path).advanced(request);
        String what = request.getType() + " " + request.getCode() + " " + path;
        check(got != null, what + ": no response");
        Response response = got.advanced();
        check(Arrays.asList(codes).contains(response.getCode()), what + ": " + response.getCode());
        check(type == null || type == response.getType(), what + ": the response is " + response.getType());
        // Each block has a token of its own.
        check(response.getPayloadSize() > 64 || request.getPayloadSize() > 64
            || request.getToken().equals(response.getToken()), what + ": another token");
        check(response.getPayloadSize() == 0 || response.isError() || response.getOptions().hasContentFormat(),
            what + ": no Content-Format");
        return response;
    }

    Response get(String path) throws Exception {
        return ask(request(Code.GET, Type.CON), path, null, ResponseCode.CONTENT);
    }

    /** TD_COAP_CORE_01 to 08, 10, 12 and 15. */
    void methods() throws Exception {
        ResponseCode[] stored = {ResponseCode.CREATED, ResponseCode.CHANGED};
        for (Type type : lossy ? new Type[] {Type.CON} : new Type[] {Type.CON, Type.NON}) {
            Type response = type == Type.CON ? Type.ACK : Type.NON;
            Response got = ask(request(Code.GET, type), "/test", response, ResponseCode.CONTENT);
            check(got.getPayloadSize() > 0, "GET /test: nothing");
            ask(request(Code.DELETE, type), "/test", response, ResponseCode.DELETED);
            ask(request(Code.PUT, type), "/test", response, stored);
            ask(request(Code.POST, type), "/test", response, stored);
        }
        Request empty = request(Code.GET, Type.CON);
        empty.setToken(Token.EMPTY);
        ask(empty, "/test", Type.ACK, ResponseCode.CONTENT);
    }

    /** TD_COAP_CORE_09, 11, 16 and 17. */
    void separate() throws Exception {
        ask(request(Code.GET, Type.CON), "/separate", Type.CON, ResponseCode.CONTENT);
        if (!lossy) ask(request(Code.GET, Type.NON), "/separate", Type.NON, ResponseCode.CONTENT);
    }

    /** TD_COAP_CORE_13, 14, and 18 to 20. */
    void options() throws Exception {
        check(get("/seg1/seg2/seg3").getPayloadSize() > 0, "/seg1/seg2/seg3: nothing");
        check(get("/query?first=1&second=2&third=3").getPayloadSize() > 0, "/query: nothing");
        Response created = ask(request(Code.POST, Type.CON), "/test", null, ResponseCode.CREATED);
        check(created.getOptions().getLocationPath().equals(List.of("location1", "location2", "location3")),
            created.getOptions());
        created = ask(request(Code.POST, Type.CON), "/location-query", null, ResponseCode.CREATED);
        check(created.getOptions().getLocationQuery().equals(List.of("first=1", "second=2")), created.getOptions());
        for (int format : new int[] {TEXT, MediaTypeRegistry.APPLICATION_XML}) {
            Request accepting = request(Code.GET, Type.CON);
            accepting.getOptions().setAccept(format);
            Response got = ask(accepting, "/multi-format", null, ResponseCode.CONTENT);
            check(got.getOptions().getContentFormat() == format, got.getOptions());
        }
    }

    Request put(byte[] expected) {
        Request request = request(Code.PUT, Type.CON);
        if (expected != null) request.getOptions().addIfMatch(expected);
        return request;
    }

    byte[] etag(byte[] known, ResponseCode code) throws Exception {
        Request request = request(Code.GET, Type.CON);
        if (known != null) request.getOptions().addETag(known);
        return ask(request, "/validate", null, code).getOptions().getETags().get(0);
    }

    /** TD_COAP_CORE_21 to 23. */
    void conditions() throws Exception {
        byte[] first = etag(null, ResponseCode.CONTENT);
        check(Arrays.equals(etag(first, ResponseCode.VALID), first), "2.03 has another ETag");
        ask(put(first), "/validate", null, ResponseCode.CHANGED);
        byte[] second = etag(first, ResponseCode.CONTENT);
        check(!Arrays.equals(first, second), "the ETag has not changed");
        ask(put(null), "/validate", null, ResponseCode.CHANGED);
        ask(put(second), "/validate", null, ResponseCode.PRECONDITION_FAILED);
        ask(request(Code.DELETE, Type.CON), "/create1", null, ResponseCode.DELETED);
        for (ResponseCode code : new ResponseCode[] {ResponseCode.CREATED, ResponseCode.PRECONDITION_FAILED}) {
            Request create = request(Code.PUT, Type.CON);
            create.getOptions().setIfNoneMatch(true);
            ask(create, "/create1", null, code);
        }
    }

    /** TD_COAP_BLOCK_01 to 06. */
    void blocks() throws Exception {
        byte[] late = get("/large").getPayload();
        check(late.length > 1024, "/large is not large");
        for (int szx : new int[] {2, 0}) {
            Request early = request(Code.GET, Type.CON);
            early.getOptions().setBlock2(szx, false, 0);
            Response got = ask(early, "/large", null, ResponseCode.CONTENT);
            check(Arrays.equals(late, got.getPayload()), "/large in blocks of SZX " + szx);
        }
        ask(upload(Code.PUT), "/large-update", null, ResponseCode.CHANGED);
        check(Arrays.equals(LARGE, get("/large-update").getPayload()), "/large-update has another body");
        Response created = ask(upload(Code.POST), "/large-create", null, ResponseCode.CREATED);
        String path = "/" + String.join("/", created.getOptions().getLocationPath());
        check(Arrays.equals(LARGE, get(path).getPayload()), path + " has another body");
        Response both = ask(upload(Code.POST), "/large-post", null, ResponseCode.CHANGED);
        check(new String(LARGE).toUpperCase().equals(both.getPayloadString()), "/large-post has another body");
    }

    Request upload(Code method) {
        Request request = request(method, Type.CON);
        request.setPayload(LARGE);
        return request;
    }

    Set<String> links(String path) throws Exception {
        Response got = get(path);
        check(got.getOptions().getContentFormat() == LINKS, got.getOptions());
        Set<String> links = new TreeSet<>();
        Matcher matcher = Pattern.compile("<([^>]*)>").matcher(got.getPayloadString());
        while (matcher.find()) links.add(matcher.group(1));
        return links;
    }

    void filter(String filter, String... expected) throws Exception {
        Set<String> links = links("/.well-known/core?" + filter);
        check(links.equals(new TreeSet<>(List.of(expected))), filter + ": " + links);
    }

    /** TD_COAP_LINK_01 to 09. */
    void links() throws Exception {
        check(links("/.well-known/core").contains("/test"), "/.well-known/core");
        filter("rt=Type1", "/link1", "/link3");
        filter("rt=Type2", "/link1", "/link2");
        filter("if=If*", "/link1", "/link2");
        filter("href=/link1", "/link1");
        filter("href=/link*", "/link1", "/link2", "/link3");
        check(!links("/.well-known/core?rt=*").contains("/test"), "rt=*");
        check(links("/.well-known/core?sz=*").contains("/large"), "sz=*");
        filter("ct=40", "/path");
        check(links("/path").contains("/path/sub1"), "/path");
        get("/path/sub1");
    }

    /** An observation, whose states are waited for. */
    class Watch implements CoapHandler {
        final BlockingQueue<Response> states = new LinkedBlockingQueue<>();
        final String path;
        final Type type;
        volatile CoapObserveRelation relation;
        int restarts;

        Watch(String path, Type type) {
            this.path = path;
            this.type = type;
            register();
        }

        void register() {
            Request request = request(Code.GET, type);
            request.setObserve();
            relation = at(path).observe(request, this);
        }

        @Override public void onLoad(CoapResponse response) {
            states.add(response.advanced());
        }

        /**
         * Californium ends an observation if the state changes while it fetches the blocks of a notification.
         * Without losses that takes less time than a state lasts.
         */
        @Override public void onError() {
            check(lossy && ++restarts <= 20, "observing " + path);
            register();
        }

        Response next() throws Exception {
            Response next = states.poll(30, TimeUnit.SECONDS);
            check(next != null, path + ": no notification");
            return next;
        }

        Response state() throws Exception {
            Response next = next();
            check(next.getCode() == ResponseCode.CONTENT, path + ": " + next.getCode());
            check(next.getOptions().hasObserve() && next.getOptions().hasContentFormat(), next.getOptions());
            return next;
        }

        /** After it has ended and what was under way has arrived, nothing more comes. */
        void quiet() throws Exception {
            Thread.sleep(1500);
            states.clear();
            check(states.poll(1500, TimeUnit.MILLISECONDS) == null, path + ": another notification");
        }

        void cancel() throws Exception {
            relation.proactiveCancel();
            if (!lossy) quiet();
        }
    }

    /** TD_COAP_OBS_01, 02 and 09 to 14. */
    void observe() throws Exception {
        Watch watch = new Watch("/obs", Type.CON);
        watch.state();
        int before = -1;
        for (int n = 0; n < 3; n++) {
            Response state = watch.state();
            // The answer to another registration comes in its acknowledgement. Californium registers again by itself
            // where a loss makes a state late (RFC 7641 section 3.3.1).
            boolean registeredAgain = lossy && state.getType() == Type.ACK;
            check(state.getType() == Type.CON || registeredAgain, "a notification is " + state.getType());
            check(state.getOptions().getObserve() > before, "Observe " + state.getOptions().getObserve());
            before = state.getOptions().getObserve();
        }
        check(!get("/obs").getOptions().hasObserve(), "a GET without Observe");
        watch.state();
        boolean seen = false;
        for (int n = 0; n < 20 && !seen; n++) {
            Request put = request(Code.PUT, Type.CON);
            put.setPayload("a new state");
            ask(put, "/obs", null, ResponseCode.CHANGED);
            seen = watch.state().getPayloadString().equals("a new state") || seen(watch);
        }
        check(seen, "the new state was never seen");
        watch.cancel();
        if (!lossy) {
            Watch non = new Watch("/obs-non", Type.NON);
            for (int n = 0; n < 3; n++) check(non.state().getType() == Type.NON, "/obs-non is not NON");
            // The next notification is answered with a Reset.
            non.relation.reactiveCancel();
            non.quiet();
        }
        Watch large = new Watch("/obs-large", Type.CON);
        for (int n = 0; n < 3; n++) check(large.state().getPayloadSize() == 1280, "/obs-large");
        large.cancel();
        Watch pumping = new Watch("/obs-pumping", Type.CON);
        Set<Boolean> sizes = new TreeSet<>();
        for (int n = 0; n < 40 && sizes.size() < 2; n++) sizes.add(pumping.state().getPayloadSize() > 64);
        check(sizes.size() == 2, "/obs-pumping has one size only");
        pumping.cancel();
    }

    static boolean seen(Watch watch) {
        return watch.states.removeIf(state -> state.getPayloadString().equals("a new state"));
    }

    /** TD_COAP_OBS_07 and 08. */
    void ends() throws Exception {
        Request put = request(Code.PUT, Type.CON);
        put.getOptions().setContentFormat(MediaTypeRegistry.APPLICATION_JSON);
        Request[] requests = {request(Code.DELETE, Type.CON), put};
        ResponseCode[] responses = {ResponseCode.DELETED, ResponseCode.CHANGED};
        ResponseCode[] errors = {ResponseCode.NOT_FOUND, ResponseCode.NOT_ACCEPTABLE};
        for (int n = 0; n < 2; n++) {
            Ending watch = new Ending();
            watch.state();
            ask(requests[n], "/obs", null, responses[n]);
            Response last;
            do last = watch.next();
            while (last.isSuccess());
            check(last.getCode() == errors[n] && !last.getOptions().hasObserve(), "the end is " + last);
        }
    }

    /** An observation that an error ends. */
    class Ending extends Watch {
        Ending() {
            super("/obs", Type.CON);
        }

        @Override public void onError() {
            // An error response arrives by onLoad.
        }
    }

    void run() throws Exception {
        check(at("/").ping(20_000), "ping");
        methods();
        separate();
        options();
        conditions();
        blocks();
        links();
        observe();
        ends();
        Thread.sleep(200);
        System.out.println("all answered");
        System.exit(0);
    }
}
