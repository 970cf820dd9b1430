import java.nio.charset.StandardCharsets;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import org.eclipse.californium.core.*;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.server.resources.*;

/** The resources of ../README.md. */
class Resources {
    static final byte[] DIGITS = "0123456789".repeat(6).getBytes(StandardCharsets.US_ASCII);
    static final byte[] LARGE = digits(1 << 20);

    static byte[] digits(int length) {
        byte[] body = new byte[length];
        for (int n = 0; n < length; n++) body[n] = (byte) ('0' + n % 10);
        return body;
    }

    static CoapResource[] all() {
        return new CoapResource[] {
            new Bytes("test", DIGITS), new Bytes("large", LARGE), new Separate(), new Echo(),
            new Count(), new Time("time", 200, n -> "" + n),
            new Time("times", 500, n -> ("" + n % 10).repeat(3000)),
        };
    }

    static class Bytes extends CoapResource {
        final byte[] body;

        Bytes(String name, byte[] body) {
            super(name);
            this.body = body;
        }

        @Override public void handleGET(CoapExchange exchange) {
            exchange.respond(ResponseCode.CONTENT, body);
        }
    }

    static class Separate extends CoapResource {
        Separate() {
            super("separate");
        }

        @Override public void handleGET(CoapExchange exchange) {
            exchange.accept();
            try {
                Thread.sleep(500);
            } catch (InterruptedException e) {
                return;
            }
            exchange.respond("that took a while");
        }
    }

    static class Echo extends CoapResource {
        Echo() {
            super("echo");
        }

        @Override public void handlePUT(CoapExchange exchange) {
            exchange.respond(ResponseCode.CHANGED, exchange.getRequestPayload());
        }

        @Override public void handlePOST(CoapExchange exchange) {
            handlePUT(exchange);
        }

        @Override public void handleDELETE(CoapExchange exchange) {
            exchange.respond(ResponseCode.DELETED);
        }
    }

    static class Count extends CoapResource {
        final AtomicInteger count = new AtomicInteger();

        Count() {
            super("count");
        }

        @Override public void handlePOST(CoapExchange exchange) {
            exchange.respond(ResponseCode.CHANGED, "" + count.incrementAndGet());
        }
    }

    static class Time extends CoapResource {
        final IntFunction<String> state;
        int number = 0;

        Time(String name, int every, IntFunction<String> state) {
            super(name);
            this.state = state;
            setObservable(true);
            getAttributes().setObservable();
            new Timer(true).schedule(new TimerTask() {
                @Override public void run() {
                    number++;
                    changed();
                }
            }, every, every);
        }

        @Override public void handleGET(CoapExchange exchange) {
            exchange.respond(state.apply(number));
        }
    }
}
