import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapObserveRelation;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.coap.OptionSet;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.network.interceptors.MessageInterceptorAdapter;
import org.eclipse.californium.elements.util.Bytes;
import org.eclipse.californium.oscore.HashMapCtxDB;
import org.eclipse.californium.oscore.OSCoreCtx;

/** The tests of the OSCORE interop test specification, as a client of any server with its resources and contexts. */
class OscoreClient extends Client {
    static final int TEXT = MediaTypeRegistry.TEXT_PLAIN;
    final HashMapCtxDB contexts;
    final String unaware;

    OscoreClient(HashMapCtxDB contexts, String base, String unaware) {
        super(OscoreContexts.endpoint(Interop.endpoint(), contexts).build(), base);
        this.contexts = contexts;
        this.unaware = unaware;
    }

    static Request request(Code method) {
        Request request = new Request(method);
        request.getOptions().setOscore(Bytes.EMPTY);
        return request;
    }

    static Request request(Code method, int payload) {
        Request request = request(method);
        request.setPayload(new byte[] {(byte) payload});
        request.getOptions().setContentFormat(TEXT);
        return request;
    }

    /** From now on requests are protected with this one. */
    OSCoreCtx use(byte[] sender, byte[] idContext) throws Exception {
        OSCoreCtx context = OscoreContexts.context(sender, OscoreContexts.SERVER, idContext);
        contexts.addContext(base, context);
        return context;
    }

    /** The options of the answer to a protected request, which has to be protected as well. */
    OptionSet ask(Request request, String path, ResponseCode code, String body) throws Exception {
        OptionSet options = ask(request, path, code, body.getBytes()).advanced().getOptions();
        check(options.hasOscore(), path + " is answered without OSCORE");
        return options;
    }

    OptionSet hello(Request request, String path) throws Exception {
        OptionSet options = ask(request, path, ResponseCode.CONTENT, "Hello World!");
        check(options.isContentFormat(TEXT), path + ": " + options);
        return options;
    }

    /** The request is refused, without OSCORE. */
    void refused(String path, ResponseCode code) throws Exception {
        CoapResponse refusal = ask(request(Code.GET), path, code, (byte[]) null);
        check(!refusal.advanced().getOptions().hasOscore(), "a refusal is protected: " + refusal.advanced());
    }

    /** Tests 1, 3, 4 and 8 to 11. */
    void requests() throws Exception {
        hello(request(Code.GET), "/oscore/hello/1");
        OptionSet tagged = hello(request(Code.GET), "/oscore/hello/2?first=1");
        check(tagged.containsETag(new byte[] {0x2b}), tagged);
        Request accepting = request(Code.GET);
        accepting.getOptions().setAccept(TEXT);
        OptionSet fresh = hello(accepting, "/oscore/hello/3");
        check(fresh.getMaxAge() == 5, fresh);
        OptionSet posted = ask(request(Code.POST, 0x4a), "/oscore/hello/6", ResponseCode.CHANGED, "\u004a");
        check(posted.isContentFormat(TEXT), posted);
        Request matching = request(Code.PUT, 0x7a);
        matching.getOptions().addIfMatch(new byte[] {0x7b});
        ask(matching, "/oscore/hello/7", ResponseCode.CHANGED, "");
        Request creating = request(Code.PUT, 0x8a);
        creating.getOptions().setIfNoneMatch(true);
        check(ask(creating, "/oscore/hello/7", ResponseCode.PRECONDITION_FAILED, (byte[]) null)
            .advanced().getOptions().hasOscore(), "a 4.12 is answered without OSCORE");
        ask(request(Code.DELETE), "/oscore/test", ResponseCode.DELETED, "");
    }

    /** Tests 6 and 7. All states arrive, of which its observation may miss some (studies/peers.md): those it sees are printed. */
    void observe(String path, List<String> states) throws Exception {
        Queue<String> seen = new ConcurrentLinkedQueue<>();
        Set<Integer> arrived = ConcurrentHashMap.newKeySet();
        Request request = request(Code.GET);
        request.setObserve();
        endpoint.addInterceptor(new MessageInterceptorAdapter() {
            @Override public void receiveResponse(Response response) {
                if (response.getToken().equals(request.getToken())) arrived.add(response.getMID());
            }
        });
        CoapObserveRelation relation = at(path).observe(request, new CoapHandler() {
            @Override public void onLoad(CoapResponse response) {
                seen.add(response.getResponseText());
            }

            @Override public void onError() {
                seen.add("an error");
            }
        });
        for (int n = 0; arrived.size() < states.size(); n++) {
            check(n < 600, path + ": " + arrived.size() + " messages");
            Thread.sleep(50);
        }
        // Of the last message.
        Thread.sleep(200);
        check(states.get(0).equals(seen.peek()) && states.containsAll(seen), path + ": " + seen);
        System.out.println(path + ": " + seen);
        relation.proactiveCancel();
    }

    void run() throws Exception {
        endpoint.start();
        // Test 0.
        ask(Request.newGet(), "/oscore/hello/coap", ResponseCode.CONTENT, "Hello World!".getBytes());
        // Test 2.
        use(OscoreContexts.CLIENT, OscoreContexts.ID_CONTEXT);
        hello(request(Code.GET), "/oscore/hello/1");
        OSCoreCtx a = use(OscoreContexts.CLIENT, null);
        requests();
        // Test 5.
        Request observing = request(Code.GET);
        observing.getOptions().setObserve(0);
        check(!hello(observing, "/oscore/hello/1").hasObserve(), "/oscore/hello/1 is observed");
        observe("/oscore/observe1", List.of("one", "two", "Terminate Observe"));
        observe("/oscore/observe2", List.of("one", "two"));
        // Test 12.
        use(new byte[] {(byte) 0xff}, null);
        refused("/oscore/hello/1", ResponseCode.UNAUTHORIZED);
        // Test 15, at the server a request with a number that it has seen.
        contexts.addContext(base, a);
        a.setSenderSeq(a.getSenderSeq() - 1);
        refused("/oscore/hello/1", ResponseCode.UNAUTHORIZED);
        // Test 13.
        byte[] key = a.getSenderKey(), other = new byte[16];
        a.setSenderKey(other);
        refused("/oscore/hello/1", ResponseCode.BAD_REQUEST);
        a.setSenderKey(key);
        // Test 17.
        ask(Request.newGet(), "/oscore/hello/1", ResponseCode.UNAUTHORIZED, (byte[]) null);
        // Test 16.
        contexts.addContext(unaware, OscoreContexts.context(OscoreContexts.CLIENT, OscoreContexts.SERVER, null));
        CoapClient client = new CoapClient(unaware + "/oscore/hello/coap");
        client.setEndpoint(endpoint);
        CoapResponse refusal = client.advanced(request(Code.GET));
        check(refusal != null && refusal.getCode() == ResponseCode.BAD_OPTION, "a server without OSCORE: " + refusal);
        // Test 14 is the last one: what the client cannot decrypt it takes for lost.
        a.setRecipientKey(other);
        client = at("/oscore/hello/1");
        client.setTimeout(1000L);
        CoapResponse undecryptable = client.advanced(request(Code.GET));
        check(undecryptable == null, "a response that was protected with another key is " + undecryptable);
        System.out.println("all answered");
        System.exit(0);
    }
}
